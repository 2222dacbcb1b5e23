// Manual QA: results saved every five seconds while somebody types, files sent one by one beside them.
const EVERY = 5000; // ms between two saves
const form = document.querySelector("form[data-qa]");
const words = (form?.dataset.words || "").split("|");
const [SAVING, SAVED, ELSEWHERE, FAILED, UPLOADING, REFUSED, AGAIN, DISMISS, DIRTY] = words;
const status = form?.querySelector(".saved");
const tell = (text) => { if (status) status.textContent = text; };
let dirty = false, busy = false, held = false;

async function save() {
  if (!dirty || busy || held) return;
  busy = true;
  dirty = false;
  tell(SAVING);
  try {
    const answer = await fetch(`${form.action}/draft`, {
      method: "POST", headers: { Accept: "application/json" }, body: new URLSearchParams(new FormData(form)),
    });
    const said = await answer.json();
    if (answer.status === 409) return conflict(said.error);
    if (!answer.ok) throw new Error(said.error.message);
    form.elements.revision.value = said.revision;
    tell(dirty ? DIRTY : SAVED);
  } catch (error) {
    dirty = true;
    tell(`${FAILED} ${error.message || ""}`);
  } finally { busy = false; }
}

function conflict(error) {
  held = true;
  tell(error.details.revision === undefined ? error.message : ELSEWHERE);
  const box = form.querySelector(".conflict");
  if (error.details.revision === undefined) return;
  box.hidden = false;
  box.querySelector("[data-mine]").onclick = () => {
    box.hidden = true;
    form.elements.revision.value = error.details.revision;
    held = false;
    dirty = true;
    save();
  };
}

function count() {
  const place = form.querySelector(".tally");
  const numbers = { pass: 0, fail: 0, waive: 0, improvement: 0, pending: 0 };
  for (const radio of form.querySelectorAll("input[type=radio]:checked")) numbers[radio.value] += 1;
  const text = place.textContent.trim().split(" · ").map((part, n) => part.replace(/^\d+/, Object.values(numbers)[n])).join(" · ");
  if (place.textContent !== text) place.textContent = text;
}

// --- files ----------------------------------------------------------------------------------------------------------
const base = form ? `/api/v1/tickets/${encodeURIComponent(form.dataset.qa)}` : "";
const listOf = (item) => document.getElementById(`files-${item}`);
const renew = (item) => htmx.ajax("GET", `${form.action}/files/${encodeURIComponent(item)}`, { target: listOf(item), swap: "innerHTML" });

async function send(item, file) {
  const line = document.createElement("li");
  line.textContent = `${UPLOADING} ${file.name} …`;
  listOf(item).parentElement.querySelector(".uploads").append(line);
  try {
    const address = `${base}/qa/items/${encodeURIComponent(item)}/evidence?name=${encodeURIComponent(file.name)}`;
    const answer = await fetch(address, { method: "POST", headers: { Accept: "application/json" }, body: file });
    if (!answer.ok) throw new Error((await answer.json()).error.message);
    line.remove();
    await renew(item);
  } catch (error) {
    line.textContent = `${file.name} ${REFUSED}: ${error.message} `;
    line.append(button(AGAIN, () => { line.remove(); send(item, file); }), " ", button(DISMISS, () => line.remove()));
  }
}

function button(text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "small";
  made.textContent = text;
  made.onclick = act;
  return made;
}

if (form?.elements.revision) {
  form.addEventListener("input", (e) => {
    if (e.target.type === "file") return;
    dirty = true;
    if (!held) tell(DIRTY);
    count();
  });
  form.addEventListener("change", async (e) => {
    const item = e.target.dataset?.evidence;
    if (!item) return;
    const files = [...e.target.files];
    e.target.value = "";
    for (const file of files) await send(item, file);
  });
  form.addEventListener("click", async (e) => {
    const file = e.target.dataset?.remove;
    if (!file) return;
    const item = e.target.closest("[data-item]").dataset.item;
    await fetch(`${base}/evidence/${file}`, { method: "DELETE", headers: { Accept: "application/json" } });
    await renew(item);
  });
  form.addEventListener("submit", () => { held = true; });
  addEventListener("pagehide", () => { if (dirty && !held) navigator.sendBeacon(`${form.action}/draft`, new URLSearchParams(new FormData(form))); });
  setInterval(save, EVERY);
}
