// A box of the overview. It is drawn again only when what it shows has changed: a selection, an open part and the focus
// in it stay, however often the proxy tells the rest.

import { el, fill } from "../dom.js";

/** `pick(state)`: the data that it shows, as JSON has them; null hides it. `render(data)`: what is below its heading. */
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

/** Names and values; a pair without a value is left out. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el(
    "dl",
    { class: "facts" },
    known.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );
}
