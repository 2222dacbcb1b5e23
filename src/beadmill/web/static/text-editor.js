// <text-editor>: line numbers beside a textarea, and marks on the lines that have a problem.
class TextEditor extends HTMLElement {
  connectedCallback() {
    this.area = this.querySelector("textarea");
    this.gutter = document.createElement("div");
    this.gutter.className = "gutter";
    this.gutter.setAttribute("aria-hidden", "true");
    this.prepend(this.gutter);
    this.area.addEventListener("input", () => this.number());
    this.area.addEventListener("scroll", () => { this.gutter.scrollTop = this.area.scrollTop; });
    this.mark();
  }
  mark() {
    const lines = document.getElementById("wrongs")?.dataset.lines || "";
    this.bad = new Set(lines.split(" ").map(Number));
    this.shown = 0;
    this.number();
  }
  number() {
    const count = this.area.value.split("\n").length;
    if (count === this.shown) return;
    this.shown = count;
    const rows = Array.from({ length: count }, (_, n) => {
      const row = document.createElement("span");
      row.textContent = n + 1;
      if (this.bad.has(n + 1)) row.className = "bad";
      return row;
    });
    this.gutter.replaceChildren(...rows);
    this.gutter.scrollTop = this.area.scrollTop;
  }
  goto(line) {
    const before = this.area.value.split("\n").slice(0, line - 1).join("\n").length;
    const at = line > 1 ? before + 1 : 0;
    this.area.focus();
    this.area.setSelectionRange(at, at);
    this.area.scrollTop = (line - 4) * parseFloat(getComputedStyle(this.area).lineHeight);
  }
  // A repaired line goes into the text, as long as the text still has the damaged one there.
  repair(line, was, now) {
    const lines = this.area.value.split("\n");
    if (lines[line - 1] !== was) return;
    lines[line - 1] = now;
    this.area.value = lines.join("\n");
    this.area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
customElements.define("text-editor", TextEditor);

const editor = () => document.querySelector("text-editor");
document.addEventListener("click", (e) => {
  const link = e.target.closest("[data-goto]");
  if (!link || !editor()) return;
  e.preventDefault();
  editor().goto(Number(link.dataset.goto));
});
document.addEventListener("change", (e) => {
  const line = e.target.dataset?.repairs;
  if (line) editor()?.repair(Number(line), e.target.form.elements[`was.${line}`].value, e.target.value);
});
document.addEventListener("htmx:after:swap", () => editor()?.mark());
const first = document.querySelector("textarea[data-line]");
if (first) editor()?.goto(Number(first.dataset.line));
