// Words saved while they are typed, compare-and-set by revision: answers of gates, documents in an editor.
const BARE = new Set(["etag", "key", "back", "choice", "over", "revision", "held"]);
const words = (form) => (form.dataset.words || "").split("|");
const place = (form, text) => { const at = form.querySelector(".saved"); if (at) at.textContent = text; };

function fieldsOf(form) {
  const out = {};
  for (const [name, value] of new FormData(form)) if (!BARE.has(name) && !name.startsWith("was.")) (out[name] ??= []).push(value);
  return out;
}

export function later(form) {
  const [saving, , , , held] = words(form);
  if (form.dataset.held) return place(form, held);
  clearTimeout(form.saving);
  place(form, saving);
  form.saving = setTimeout(() => save(form), 700);
}

async function save(form) {
  const [, saved, elsewhere, failed] = words(form);
  const target = form.dataset.draft.split("/").map(encodeURIComponent).join("/");
  try {
    const answer = await fetch(`/api/v1/drafts/${target}`, {
      method: "PUT",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify({ body: fieldsOf(form), revision: Number(form.dataset.revision) }),
    });
    if (answer.status === 409) return conflict(form, elsewhere, (await answer.json()).error.details.revision);
    if (!answer.ok) return place(form, failed);
    form.dataset.revision = (await answer.json()).revision;
    place(form, saved);
  } catch { place(form, failed); }
}

function conflict(form, text, revision) {
  place(form, text);
  const box = form.querySelector(".conflict");
  if (!box) return;
  box.hidden = false;
  box.querySelector("[data-mine]").onclick = () => {
    box.hidden = true;
    form.dataset.revision = revision;
    save(form);
  };
}

document.addEventListener("input", (e) => {
  const form = e.target.closest("form[data-draft]");
  if (form) later(form);
});
document.addEventListener("submit", (e) => {
  clearTimeout(e.target.saving);
  const revision = e.target.querySelector?.("input[name=revision]");
  if (revision && e.target.dataset.draft) revision.value = e.target.dataset.revision;
}, true);
