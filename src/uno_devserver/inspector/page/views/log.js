// The live log of the proxy and its server, filtered by level, source and text. It follows the newest line until the
// user scrolls up.

import { copyButton, el, field, fill } from "../dom.js";
import { clock, moment } from "../format.js";
import { kindOf } from "../state-kinds.js";
import { createMemory } from "../tab-memory.js";

const LEVELS = ["Trace", "Debug", "Information", "Warning", "Error", "Critical"];
const USUAL_LEVEL = "Information"; // lower levels are for faults of the proxy itself
const MOST_LINES = 2000; // in the page; as many as the store keeps
const AT_END_PIXELS = 24; // within this distance, about a line, counts as at the end

export function create({ store }) {
  const memory = createMemory("log", "level");
  const chosen = memory.read() ?? USUAL_LEVEL;
  const level = el(
    "select",
    { onchange: chooseLevel },
    LEVELS.map((name) => el("option", { value: name, selected: name === chosen }, levelText(name))),
  );
  const source = el(
    "select",
    { onchange: redraw },
    el("option", { value: "" }, "All"),
    el("option", { value: "proxy" }, "Proxy"),
    el("option", { value: "server" }, "Server"),
  );
  const search = el("input", { type: "search", oninput: redraw, autocomplete: "off", spellcheck: "false" });
  const lines = el("ol", { class: "lines" });
  // The role `log` is live by default; debug lines are too many to be read out.
  const box = el(
    "div",
    { class: "log", role: "log", "aria-label": "Log", "aria-live": "off", tabindex: "0", onscroll: scrolled },
    lines,
  );
  const nothing = el("p", { class: "log-empty muted" });
  const newest = el(
    "button",
    { class: "button small newest", type: "button", hidden: true, onclick: () => follow() },
    "Newest ↓",
  );
  const counted = el("p", { class: "muted log-count" });
  let following = true;
  let last = 0; // the number of the newest line that was processed

  const element = el(
    "section",
    { class: "log-view" },
    el("h2", {}, "Log"),
    el(
      "div",
      { class: "toolbar" },
      field("Level", level),
      field("Source", source),
      field("Search", search),
      copyButton(() => shownLines().map(asText).join("\n"), "Copy", "button"),
    ),
    el("div", { class: "log-frame" }, box, nothing, newest),
    counted,
  );

  function chooseLevel() {
    memory.write(level.value);
    redraw();
  }

  function shownLines() {
    return store.state.log.filter(matches);
  }

  function matches(line) {
    return (
      LEVELS.indexOf(line.level) >= LEVELS.indexOf(level.value) &&
      (source.value === "" || line.source === source.value) &&
      line.text.toLowerCase().includes(search.value.toLowerCase())
    );
  }

  function redraw() {
    fill(
      lines,
      shownLines().map((line) => lineItem(line, search.value)),
    );
    last = store.state.log.reduce((most, { n }) => Math.max(most, n), 0);
    summarise();
    if (following) follow();
  }

  function append(added) {
    const news = added.filter(({ n }) => n > last);
    last = news.at(-1)?.n ?? last;
    for (const line of news.filter(matches)) put(lineItem(line, search.value));
    while (lines.childElementCount > MOST_LINES) lines.firstElementChild.remove();
    summarise();
    if (following) follow();
  }

  /** Inserts a line by its time, the order of the store. */
  function put(item) {
    let before = lines.lastElementChild;
    while (before && before.dataset.at > Number(item.dataset.at)) before = before.previousElementSibling;
    if (before) before.after(item);
    else lines.prepend(item);
  }

  function summarise() {
    const shown = lines.childElementCount;
    const all = store.state.log.length;
    counted.textContent = shown === all ? `${all} lines` : `${shown} of ${all} lines`;
    nothing.textContent = shown ? "" : all ? "No line matches." : "Nothing has been logged yet.";
    nothing.hidden = shown > 0;
  }

  function scrolled() {
    following = box.scrollHeight - box.scrollTop - box.clientHeight < AT_END_PIXELS;
    newest.hidden = following;
  }

  function follow() {
    following = true;
    newest.hidden = true;
    box.scrollTop = box.scrollHeight;
  }

  return {
    element,
    update(state, change, details) {
      if (change === "snapshot") redraw();
      else if (change === "log") append(details.flat());
    },
  };
}

function levelText(name) {
  return name === LEVELS[0] ? "All" : name === LEVELS.at(-1) ? name : `${name} and above`;
}

function lineItem(line, wanted) {
  const { at, level, source, text } = line;
  return el(
    "li",
    { class: "line", "data-kind": kindOf(level), "data-level": level, "data-at": at },
    el("time", { class: "line-time" }, clock(moment(at), true)),
    el("span", { class: "line-level" }, level),
    el("span", { class: "line-source" }, source),
    el("span", { class: "line-text" }, highlighted(text, wanted)),
  );
}

/** The text with the matches marked, unless its lower case has another length (İ), which would shift them. */
function highlighted(text, wanted) {
  const lower = text.toLowerCase();
  const sought = wanted.toLowerCase();
  if (sought === "" || lower.length !== text.length) return text;
  const parts = [];
  let end = 0;
  for (let found = lower.indexOf(sought); found >= 0; found = lower.indexOf(sought, end)) {
    parts.push(text.slice(end, found), el("mark", {}, text.slice(found, found + sought.length)));
    end = found + sought.length;
  }
  return [...parts, text.slice(end)];
}

function asText({ at, level, source, text }) {
  return `${moment(at).toISOString()} ${level} ${source} ${text}`;
}
