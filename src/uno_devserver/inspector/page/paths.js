// Paths as people say them: what lies below the user's own folder begins with ~. The whole one is the tooltip's.

import { el } from "./dom.js";
import { shortened } from "./format.js";

let home = ""; // as the proxy tells it; the same for all proxies that this page may come to know

export function keepHome(path) {
  home = path;
}

export function pathText(path) {
  return el("span", { class: "mono", title: path }, shortened(path, home));
}
