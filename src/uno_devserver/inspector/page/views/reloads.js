import { el } from "../dom.js";

export function create() {
  return { element: el("section", {}, el("h2", {}, "Reloads")) };
}
