// The requests, live: how many are in each state, and each with its times, newest first.

import { el, empty, field, fill, tableHead } from "../dom.js";
import { plural } from "../format.js";
import { kindOf } from "../state-kinds.js";
import { CallRow } from "../call-row.js";

const LANES = ["queued", "running", "restarting", "done", "failed", "cancelled"];
const COLUMNS = [
  ["Call"],
  ["Client", "wide-only"],
  ["State"],
  ["Queued", "number wide-only"],
  ["Running", "number wide-only"],
  ["Total", "number"],
];
const TICK_MS = 100; // tenths of a second are shown

export function create({ store }) {
  const rows = new Map(); // by the id of the call
  const lanes = new Map(LANES.map((state) => [state, lane(state, () => choose(state))]));
  const search = el("input", { type: "search", oninput: sift, autocomplete: "off", spellcheck: "false" });
  const filter = field("Filter", search);
  filter.classList.add("inline");
  const body = el("tbody", { role: "rowgroup" });
  const caption = el("caption", { class: "visually-hidden" }, "Calls, newest first");
  const head = tableHead(COLUMNS);
  const list = el("table", { class: "table calls", role: "table", onkeydown: closeByEscape }, caption, head, body);
  const nothing = el("div");
  let chosen = null; // the state to which the list is filtered
  let ticking = 0;

  const element = el(
    "section",
    {},
    el("h2", {}, "Calls"),
    el(
      "ul",
      { class: "lanes", "aria-label": "Calls by state; press to see one state alone" },
      [...lanes.values()].map(({ button }) => el("li", {}, button)),
    ),
    el("div", { class: "toolbar" }, filter),
    nothing,
    el("div", { class: "card calls-card" }, list),
  );

  /** Updates all rows, or those that have changed. */
  function update(state, change, details) {
    if (change === "call") for (const call of details) upsert(call);
    else if (change === "snapshot") replaceAll(state.calls);
    else if (change === "connection") return tick();
    else return;
    drop(state.calls);
    count(state.calls);
    sift();
    tick();
  }

  function replaceAll(calls) {
    const kept = [...rows.values()].filter((row) => calls.get(row.call.id)?.at === row.call.at);
    for (const row of rows.values()) if (!kept.includes(row)) forget(row); // another proxy starts counting again
    for (const call of calls.values()) upsert(call);
  }

  function upsert(call) {
    const known = rows.get(call.id);
    if (known) return known.show(call);
    const row = new CallRow(call);
    rows.set(call.id, row);
    body.prepend(...row.elements);
  }

  function drop(calls) {
    for (const row of rows.values()) if (!calls.has(row.call.id)) forget(row);
  }

  function forget(row) {
    rows.delete(row.call.id);
    for (const each of row.elements) each.remove();
  }

  function count(calls) {
    const counts = Object.fromEntries(LANES.map((state) => [state, 0]));
    for (const call of calls.values()) counts[call.state] += 1;
    for (const [state, { number, button }] of lanes) {
      number.textContent = counts[state];
      button.dataset.empty = counts[state] === 0;
    }
  }

  function choose(state) {
    chosen = chosen === state ? null : state;
    for (const [each, { button }] of lanes) button.setAttribute("aria-pressed", each === chosen);
    sift();
  }

  function sift() {
    const wanted = search.value.trim().toLowerCase();
    let visible = 0;
    for (const row of rows.values()) {
      const matches = (chosen === null || row.call.state === chosen) && row.text.includes(wanted);
      row.hidden = !matches;
      visible += matches;
    }
    list.parentElement.hidden = visible === 0;
    fill(nothing, visible === 0 && absence());
  }

  function absence() {
    if (rows.size) return empty("No call matches.", `${plural(rows.size, "call")} of another state or text.`);
    return empty(
      "No calls yet.",
      "Calls of all clients are shown while a page is open. Make one under Tools, or let your agent work.",
    );
  }

  /** Repeats while a call is running, the page is connected, and the view is visible. */
  function tick() {
    clearTimeout(ticking);
    if (!element.isConnected || store.state.connection !== "connected") return;
    const now = Date.now() - store.state.clockSkewMs;
    const live = [...rows.values()].filter((row) => row.isLive);
    for (const row of live) row.tick(now);
    if (live.length) ticking = setTimeout(tick, TICK_MS);
  }

  function closeByEscape(event) {
    if (event.key !== "Escape") return;
    const row = [...rows.values()].find(({ elements }) => elements.some((each) => each.contains(event.target)));
    row?.close();
  }

  return { element, update };
}

function lane(state, onclick) {
  const number = el("span", { class: "lane-number" }, "0");
  const button = el(
    "button",
    { class: "lane", type: "button", "data-lane": state, "data-kind": kindOf(state), "aria-pressed": "false", onclick },
    el(
      "span",
      { class: "lane-name" },
      el("span", { class: "dot", "data-kind": kindOf(state), "aria-hidden": "true" }),
      state,
    ),
    number,
  );
  return { button, number };
}
