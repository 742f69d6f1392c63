// A searchable list with the details of the chosen entry, for Tools, Resources and Prompts. The list is read again
// whenever the proxy announces a change or reconnects; the details of an entry are then updated, never discarded.

import { el, empty, fill, unique } from "./dom.js";
import { plural } from "./format.js";

/**
 * `load()` resolves to entries { key, name, group?, hint?, search, shape, ... }; entries of the same `shape`
 * are the same. `detail(entry)` gives { element, refresh(entry) }; `refresh` is called when the entry has changed.
 * `stranger(key)`, if given, makes an entry for a key that is not in the list.
 */
export function createChooser({ title, noun, route, hint, context, load, detail, stranger }) {
  const search = el("input", { type: "search", id: unique("search"), autocomplete: "off", spellcheck: "false" });
  const count = el("p", { class: "muted choices-count", role: "status" });
  const choices = el("div", { class: "choices-groups" });
  const chosen = el("div", { class: "chosen" });
  const label = el("label", { class: "visually-hidden", for: search.id }, `Search ${noun}s`);
  search.placeholder = `Search ${noun}s`;
  const left = el("div", { class: "chooser-list" }, label, search, count, choices);
  const back = el("a", { class: "back", href: `#${route}` }, `← All ${noun}s`);
  const right = el("div", { class: "chooser-detail" }, back, chosen);
  const columns = el("div", { class: "list-detail chooser" }, left, right);
  const body = el("div", {}, el("p", { class: "muted" }, "Reading the list…"));
  const element = el("section", {}, el("h2", {}, title), body);
  const details = new Map(); // key -> { shape, view }
  let entries = null;
  let selected = null;
  let read = -1; // the revision of the lists that is shown
  let reading = null;

  search.addEventListener("input", list);
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !search.value) return;
    event.preventDefault();
    search.value = "";
    list();
  });

  function show([key]) {
    const moved = selected !== (key ?? null);
    selected = key ?? null;
    columns.toggleAttribute("data-chosen", selected !== null);
    if (entries === null) return;
    draw();
    if (moved && selected !== null) arrive();
  }

  function update(state) {
    if (state.ready && state.connection === "connected" && state.listsRevision !== read) refresh(state.listsRevision);
  }

  async function refresh(revision) {
    read = revision;
    reading?.abort();
    const own = (reading = new AbortController());
    try {
      const loaded = await load({ signal: own.signal });
      if (own.signal.aborted) return;
      entries = loaded;
      draw();
    } catch (error) {
      if (own.signal.aborted) return;
      const retry = () => refresh(revision);
      const again = el("button", { class: "button small", type: "button", onclick: retry }, "Try again");
      const text = `The ${noun}s could not be read: ${error.message}`;
      if (entries === null) fill(body, el("div", { class: "notice", "data-kind": "bad" }, el("p", {}, text), again));
      else context.announce(text); // the list that was read before stays
    }
  }

  function draw() {
    if (!entries.length && !(selected !== null && stranger)) fill(body, empty(`No ${noun}s`, hint));
    else if (columns.parentElement !== body) fill(body, columns);
    list();
    choose();
  }

  function list() {
    const focused = choices.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = entries.filter((entry) => words.every((word) => entry.search.toLowerCase().includes(word)));
    count.textContent = `${words.length ? `${found.length} of ` : ""}${plural(entries.length, noun)}`;
    const groups = Map.groupBy(found, (entry) => entry.group ?? "");
    fill(
      choices,
      [...groups].map(([group, members]) => [
        group && el("h3", { class: "group" }, group),
        el("ul", { class: "choices" }, members.map(choice)),
      ]),
    );
    if (focused) [...choices.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
  }

  function choice(entry) {
    const attributes = { href: `#${route}/${encodeURIComponent(entry.key)}` };
    if (entry.key === selected) attributes["aria-current"] = "true";
    const name = el("span", { class: "choice-name" }, entry.name);
    const hint = entry.hint && el("span", { class: "choice-hint", "aria-hidden": "true" }, entry.hint);
    return el("li", {}, el("a", attributes, name, hint));
  }

  function choose() {
    if (selected === null) {
      fill(chosen, empty(`Choose a ${noun}`, "What it takes and what it answers is shown here."));
      return;
    }
    const entry = entries.find((each) => each.key === selected) ?? stranger?.(selected);
    if (!entry) {
      fill(chosen, empty(`There is no ${noun} '${selected}'`, "It may have been renamed or taken away."));
      return;
    }
    const { view } = kept(entry);
    if (chosen.firstChild !== view.element) fill(chosen, view.element);
  }

  function kept(entry) {
    const before = details.get(entry.key);
    if (!before) {
      const made = { shape: entry.shape, view: detail(entry) };
      details.set(entry.key, made);
      return made;
    }
    if (before.shape !== entry.shape) before.view.refresh(entry);
    before.shape = entry.shape;
    return before;
  }

  /** Moves the focus to the details, because the list may be out of sight. */
  function arrive() {
    const heading = chosen.querySelector("h3");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
    if (getComputedStyle(left).display === "none") scrollTo(0, 0);
  }

  return { element, show, update };
}
