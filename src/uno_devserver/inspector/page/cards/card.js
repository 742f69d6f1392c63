// A box of the overview. It is drawn again only when its own data has changed, so that a selection, an open part and
// the focus in it survive other events.

import { el, fill } from "../dom.js";

/** `pick(state)` returns its data, as JSON types; null hides it. `render(data)` makes the content below the heading. */
export function card({ title, titled = true, wide = false, pick, render }) {
  const heading = el("h3", { class: titled ? null : "visually-hidden" }, title);
  const element = el("section", { class: wide ? "card wide" : "card", "aria-label": title, hidden: true }, heading);
  let shown = "null";

  return {
    element,
    update(state) {
      const data = pick(state);
      const text = JSON.stringify(data);
      if (text === shown) return;
      shown = text;
      element.hidden = data === null;
      fill(element, heading, data === null ? null : render(data));
    },
  };
}

/** A list of names and values; pairs without a value are left out. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el(
    "dl",
    { class: "facts" },
    known.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );
}
