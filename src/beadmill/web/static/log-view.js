// <log-view src="/api/v1/sessions/…/log">: follows a session's log. Only the rows in view are drawn.
const ROW = 20; // px, as in the style sheet
const SPARE = 10; // rows drawn beyond the view
const MOST = 200000; // lines kept

/** One line of events.jsonl as [class, text]. */
function read(raw) {
  let event;
  try { event = JSON.parse(raw); } catch { return [["", raw]]; }
  const data = event.data || {};
  const lines = (text, kind = "") => String(text ?? "").split("\n").map((one) => [kind, one]);
  switch (event.kind) {
    case "text": return lines(data.text);
    case "thinking": return lines(data.text, "dim");
    case "tool": return [["tool", `→ ${data.name} ${short(data.input)}`]];
    case "tool_done": return [["tool", `← ${data.name ?? ""} ${data.ok === false ? "failed" : "done"}`], ...lines(data.output, "dim")];
    case "command": return [["tool", `$ ${data.command}`]];
    case "command_done": return [["tool", `exit ${data.exit} after ${data.seconds} s`]];
    case "output": return lines(data.text, "dim");
    case "usage": return [["dim", `tokens: ${data.input ?? 0} in, ${data.cached ?? 0} cached, ${data.output ?? 0} out`]];
    case "warning": case "retry": return [["warn", data.message ?? event.kind]];
    case "started": return [["dim", `started ${data.model ?? ""} ${data.version ?? ""}`]];
    case "ended": return [["dim", `ended: ${data.type ?? ""}`]];
    default: return [["", raw]];
  }
}
function short(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value ?? "");
  return text.length > 300 ? `${text.slice(0, 300)} …` : text;
}

class LogView extends HTMLElement {
  connectedCallback() {
    if (this.rows) return this.open();
    this.lines = [];
    [this.wReading, this.wEnded, this.wNothing, this.wLines] = (this.dataset.words || "Reading …|Ended.|Nothing yet.|lines").split("|");
    const bar = document.createElement("div");
    bar.className = "bar";
    const title = document.createElement("b");
    title.textContent = this.dataset.title || "";
    this.note = document.createElement("span");
    this.note.className = "say";
    this.note.setAttribute("role", "status");
    this.note.textContent = this.wReading;
    bar.append(title, this.note);
    this.rows = document.createElement("div");
    this.rows.className = "rows";
    this.rows.tabIndex = 0;
    this.rows.setAttribute("role", "log");
    this.rows.setAttribute("aria-live", "off");
    this.rows.setAttribute("aria-label", this.dataset.title || "log");
    this.pad = document.createElement("div");
    this.pad.className = "pad";
    this.rows.append(this.pad);
    this.replaceChildren(bar, this.rows);
    this.rows.addEventListener("scroll", () => this.plan());
    this.visible = () => (document.hidden ? this.close() : this.open());
    this.open();
  }
  disconnectedCallback() {
    this.close();
    document.removeEventListener("visibilitychange", this.visible);
  }
  open() {
    document.addEventListener("visibilitychange", this.visible);
    if (this.source || this.over || document.hidden) return;
    const from = this.next ? `?after=${this.next}` : "";
    this.source = new EventSource(this.getAttribute("src") + from);
    this.source.addEventListener("lines", (e) => this.add(JSON.parse(e.data)));
    this.source.addEventListener("end", () => { this.over = true; this.close(); this.count(); });
  }
  close() { this.source?.close(); this.source = null; }
  add({ lines, next }) {
    if (next <= (this.next || 0)) return;
    this.next = next;
    const atEnd = this.rows.scrollTop + this.rows.clientHeight >= this.pad.offsetHeight - 2 * ROW;
    for (const raw of lines) for (const line of read(raw)) this.lines.push(line);
    if (this.lines.length > MOST) this.lines.splice(0, this.lines.length - MOST);
    this.count();
    this.pad.style.height = `${this.lines.length * ROW}px`;
    if (atEnd) this.rows.scrollTop = this.pad.offsetHeight;
    this.plan();
  }
  count() {
    const text = this.lines.length ? `${this.wLines}: ${this.lines.length}` : this.wNothing;
    this.note.textContent = this.over ? `${text} · ${this.wEnded}` : text;
  }
  plan() {
    if (this.planned) return;
    this.planned = requestAnimationFrame(() => { this.planned = 0; this.draw(); });
  }
  draw() {
    const first = Math.max(0, Math.floor(this.rows.scrollTop / ROW) - SPARE);
    const last = Math.min(this.lines.length, Math.ceil((this.rows.scrollTop + this.rows.clientHeight) / ROW) + SPARE);
    const out = [];
    for (let n = first; n < last; n++) {
      const row = document.createElement("div");
      row.className = `row ${this.lines[n][0]}`;
      row.style.top = `${n * ROW}px`;
      row.textContent = this.lines[n][1];
      out.push(row);
    }
    this.pad.replaceChildren(...out);
  }
}
customElements.define("log-view", LogView);
