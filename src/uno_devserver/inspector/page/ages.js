// Times as "12 s ago", updated while they are shown.

import { el } from "./dom.js";
import { ago } from "./format.js";

const REFRESH_MS = 1000;

/** The tooltip has the exact time. */
export function age(date) {
  return el(
    "time",
    { datetime: date.toISOString(), title: date.toLocaleString(), "data-age": date.getTime() },
    ago(date),
  );
}

export function keepAges(root) {
  setInterval(() => {
    for (const element of root.querySelectorAll("time[data-age]")) {
      const text = ago(new Date(Number(element.dataset.age)));
      if (element.textContent !== text) element.textContent = text; // otherwise a selection would be lost
    }
  }, REFRESH_MS);
}
