// The small rest that HTML cannot do: fresh times, countdowns, live refresh, gates that changed meanwhile.
import "./log-view.js";
import "./text-editor.js";
import { later } from "./drafts.js";

const QUIET = 2000; // ms between two refreshes of a page
const words = (element) => (element.dataset.words || "").split("|");

// --- times: relative on the screen, exact in the reader's own zone on hover ---------------------------------------
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"]];
function ago(at, now) {
  let seconds = (now - at) / 1000;
  const ahead = seconds < 0;
  seconds = Math.abs(seconds);
  for (const [size, unit] of UNITS) {
    if (seconds >= size) return ahead ? `in ${Math.floor(seconds / size)} ${unit}` : `${Math.floor(seconds / size)} ${unit} ago`;
  }
  if (seconds < 5) return "now";
  return ahead ? `in ${Math.floor(seconds)} s` : `${Math.floor(seconds)} s ago`;
}
function freshen() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime);
    const text = ago(at, now);
    if (time.textContent !== text) time.textContent = text;
    const exact = new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    if (time.title !== exact) time.title = exact;
  }
}
setInterval(() => { if (!document.hidden) freshen(); }, 5000);

class CountDown extends HTMLElement {
  connectedCallback() { this.tick(); this.timer = setInterval(() => this.tick(), 1000); }
  disconnectedCallback() { clearInterval(this.timer); }
  tick() {
    const left = Math.max(0, Math.round((Date.parse(this.getAttribute("until")) - Date.now()) / 1000));
    this.textContent = `in ${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  }
}
customElements.define("count-down", CountDown);

const touched = new WeakSet(); // places in which somebody typed; no attribute, a refresh would take it away

// --- live: one stream, one refresh at a time, not more often than every QUIET ms -----------------------------------
const stream = document.getElementById("stream");
const say = (text) => { if (stream && stream.textContent !== text) stream.textContent = text; };
let last = 0, timer = 0;
function refresh() {
  if (timer) return;
  timer = setTimeout(() => {
    timer = 0;
    last = Date.now();
    const live = document.getElementById("live");
    if (!live) return;
    if (touched.has(live)) say(live.dataset.kept);
    else htmx.trigger(live, "changed");
  }, Math.max(150, last + QUIET - Date.now()));
}
const events = document.getElementById("events");
const topics = (document.body.dataset.topics || "").split(",");
const concerns = (event) => !event.ticket || topics.every((t) => !t.startsWith("ticket:")) || topics.includes(`ticket:${event.ticket}`);
events?.addEventListener("htmx:sse:after:message", ({ detail: { message } }) => {
  const event = message.event === "reset" ? {} : JSON.parse(message.data || "{}");
  if (concerns(event)) refresh();
  if (message.event === "reset" || message.event.startsWith("gate.") || message.event.startsWith("run.")) {
    const waits = document.getElementById("waits");
    if (waits) htmx.trigger(waits, "gates");
  }
});
events?.addEventListener("htmx:sse:after:connection", (e) => { if (e.detail.connection.attempt) refresh(); say(""); });
events?.addEventListener("htmx:sse:error", () => say("The daemon does not answer; trying again …"));

// An error of the API or the guard is JSON: it is shown in words, never swapped into the page.
document.addEventListener("htmx:before:swap", (e) => {
  const response = e.detail?.ctx?.response;
  const type = response?.headers?.get?.("content-type") || response?.raw?.headers?.get?.("content-type") || "";
  if (!type.includes("json")) return;
  e.preventDefault();
  if (response.status === 401) say("This browser is not signed in any more. Run: beadmill open");
  else say(`The page could not be refreshed (${response.status}).`);
});

// --- gates: what a person types is never taken away -----------------------------------------------------------------
function gatesOf(region) { return (region.dataset.gates || "").trim(); }
function shownGates(region) {
  return [...region.querySelectorAll("[data-gate]")].map((g) => `${g.dataset.gate}@${g.dataset.etag}`).join(" ");
}
function renew(region) {
  touched.delete(region);
  return htmx.ajax("GET", region.dataset.address, { target: region, swap: "innerHTML" });
}
async function compare() {
  const region = document.getElementById("gates");
  if (!region || gatesOf(region) === shownGates(region)) return;
  if (!touched.has(region)) return void renew(region);
  const wanted = new Set(gatesOf(region).split(" "));
  for (const gate of region.querySelectorAll("[data-gate]")) {
    const here = `${gate.dataset.gate}@${gate.dataset.etag}`;
    if (!wanted.has(here) && gate.dataset.told !== gatesOf(region)) {
      gate.dataset.told = gatesOf(region);
      const address = `/gates/${gate.dataset.gate.split("/").map(encodeURIComponent).join("/")}/notice`;
      await htmx.ajax("GET", address, { target: gate.querySelector(".gate-notice"), swap: "innerHTML" });
    }
  }
}
document.addEventListener("htmx:after:swap", () => { freshen(); compare(); });
document.addEventListener("click", (e) => {
  if (e.target.closest("[data-renew]")) {
    const region = e.target.closest("#gates");
    if (region) renew(region); else location.reload();
  }
});
document.addEventListener("input", (e) => {
  const region = e.target.closest("#gates");
  if (region) touched.add(region);
  if (e.target.closest(".slot")) touched.add(document.getElementById("live"));
  const form = e.target.closest("form[data-hold]");
  if (form) hold(form);
});

// --- the countdown of an agent's question stops with the first thing that is typed or chosen ------------------------
async function hold(form) {
  const gate = form.dataset.hold, place = form.parentElement.querySelector(".countdown");
  delete form.dataset.hold;
  try {
    const answer = await fetch(`/api/v1/gates/${gate.split("/").map(encodeURIComponent).join("/")}/hold`, {
      method: "POST", headers: { Accept: "application/json" },
    });
    if (answer.ok && place) place.textContent = place.dataset.stopped;
    if (!answer.ok && answer.status !== 409) form.dataset.hold = gate;
  } catch { form.dataset.hold = gate; }
}

// --- forms: ask before what cannot be undone; a double click is one click -------------------------------------------
document.addEventListener("submit", (e) => {
  const question = e.submitter?.dataset.confirm || e.target.dataset.confirm;
  if (question && !confirm(question)) return void e.preventDefault();
  if (e.target.dataset.busy) return void e.preventDefault();
  if (e.target.method === "post") e.target.dataset.busy = "1";
});
addEventListener("pageshow", () => { for (const form of document.querySelectorAll("form[data-busy]")) delete form.dataset.busy; });
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) { menu.open = false; menu.firstElementChild.focus(); }
});

// --- a form that was changed by a button: the item it was about comes into view, and the draft is saved -------------
document.addEventListener("htmx:after:swap", () => {
  const form = document.getElementById("form");
  if (!form?.dataset.fresh) return;
  const item = document.getElementById(form.dataset.fresh);
  delete form.dataset.fresh;
  if (item?.tagName === "DETAILS") item.open = true;
  (item || form).querySelector("input, textarea, select, button")?.focus();
  later(form.closest("form"));
});

freshen();
