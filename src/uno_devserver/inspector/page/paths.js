// Paths with ~ for the user's home folder. The tooltip has the full path.

import { el } from "./dom.js";
import { shortened } from "./format.js";

let home = ""; // from the proxy; the same for all proxies of this user

export function keepHome(path) {
  home = path;
}

export function pathText(path) {
  return el("span", { class: "mono", title: path }, shortened(path, home));
}
