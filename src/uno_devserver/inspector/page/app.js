// The frame of the page: the current view, the header around it, and the connection. Views know nothing of each other.
//
// A view module exports create(context) -> {element, show?(parts), update?(state, change, details)}. It is created at
// its first visit; while it is shown it is updated, with "snapshot" whenever it is shown again. The context is
// {store, key, announce(text)}.

import { keepAges } from "./ages.js";
import { el, fill } from "./dom.js";
import { follow } from "./events.js";
import { basename, shortened } from "./format.js";
import { keepHome } from "./paths.js";
import { Store } from "./store.js";
import * as calls from "./views/calls.js";
import * as log from "./views/log.js";
import * as overview from "./views/overview.js";
import * as prompts from "./views/prompts.js";
import * as reloads from "./views/reloads.js";
import * as resources from "./views/resources.js";
import * as servers from "./views/servers.js";
import * as tools from "./views/tools.js";

const VIEWS = [
  { route: "overview", title: "Overview", module: overview, count: (state) => state.health?.issues.length },
  { route: "calls", title: "Calls", module: calls, count: (state) => underWay(state.calls) },
  { route: "tools", title: "Tools", module: tools },
  { route: "resources", title: "Resources", module: resources },
  { route: "prompts", title: "Prompts", module: prompts },
  { route: "log", title: "Log", module: log },
  { route: "reloads", title: "Reloads", module: reloads },
  { route: "servers", title: "Servers", module: servers },
];

const CONNECTIONS = {
  connecting: "Connecting…",
  connected: "Live", // of this page; "Connected" is a state of the server behind the proxy
  reconnecting: "Reconnecting…",
  refused: "Not allowed",
};

const store = new Store();
const key = await window.pageKey; // of access.js
const context = { store, key, announce };
const main = document.getElementById("main");
const refusal = el(
  "div",
  { class: "notice refusal", "data-kind": "bad", hidden: true },
  el("p", {}, "The proxy does not know this page: it is that of another workspace, or the page was not used for a day."),
  el("p", {}, "Run ", el("code", {}, "uno-devserver inspect"), " in the workspace: it opens the page again."),
);
const links = new Map();
const shown = { route: null, view: null };

if (key) start();
else showRefusal();

function start() {
  fill(document.getElementById("links"), VIEWS.map(link));
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the hash names the view
    main.focus();
  });
  addEventListener("hashchange", route);
  store.subscribe(changed);
  route();
  frame(store.state);
  keepAges(main);
  follow(store, key);
}

function showRefusal() {
  location.replace("refused");
}

function link({ route: name, title }) {
  const count = el("span", { class: "count", "aria-hidden": "true", hidden: true });
  const anchor = el("a", { href: `#${name}` }, el("span", {}, title), count);
  links.set(name, { anchor, count });
  return el("li", {}, anchor);
}

// --- navigation

function route() {
  const [name, ...parts] = location.hash.slice(1).split("/").map(decoded);
  const entry = VIEWS.find((each) => each.route === name) ?? VIEWS[0];
  const moved = entry.route !== shown.route;
  if (moved) {
    const first = shown.route === null;
    entry.view ??= entry.module.create(context);
    Object.assign(shown, { route: entry.route, view: entry.view });
    fill(main, refusal, entry.view.element);
    mark(entry.route);
    if (!first) land(entry.view.element);
  }
  shown.view.show?.(parts);
  if (moved) shown.view.update?.(store.state, "snapshot", []);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand, with a % that encodes nothing
  }
}

function mark(current) {
  for (const [name, { anchor }] of links) {
    if (name === current) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

/** As after loading a page: scrolls to the top, and a screen reader begins at the heading. */
function land(element) {
  scrollTo(0, 0);
  const heading = element.querySelector("h2");
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
}

// --- header

function changed(state, change, details) {
  if (change !== "log") frame(state);
  shown.view.update?.(state, change, details);
}

function frame(state) {
  const connection = document.getElementById("connection");
  document.body.dataset.connection = state.connection;
  if (connection.dataset.shown !== state.connection) {
    connection.dataset.shown = state.connection; // setting the text again would read it out again
    fill(connection, el("span", { class: "dot", "aria-hidden": "true" }), CONNECTIONS[state.connection]);
  }
  refusal.hidden = state.connection !== "refused";
  if (!refusal.hidden && !state.ready) showRefusal(); // a page that was live before waits for its next proxy
  for (const view of VIEWS) showCount(links.get(view.route).count, view.count?.(state) ?? 0);
  if (!state.ready) return;
  keepHome(state.home);
  const workspace = basename(state.solution ?? state.directory).replace(/\.slnx?$/, "");
  document.getElementById("workspace").textContent = workspace;
  place(document.getElementById("directory"), state.solution ?? state.directory, state.home);
  document.getElementById("version").textContent = `uno-devserver ${state.version}, process ${state.processId}`;
  document.title = `● ${workspace} — ${titleState(state)}`;
}

function place(element, path, home) {
  if (element.title === path) return; // otherwise a selection would be lost
  element.title = path;
  element.textContent = shortened(path, home);
}

function titleState(state) {
  return state.connection === "connected" ? state.health.proxy.state : CONNECTIONS[state.connection];
}

function showCount(count, number) {
  count.textContent = number;
  count.hidden = number === 0;
}

function underWay(all) {
  let number = 0;
  for (const call of all.values()) if (call.totalMs === null) number += 1;
  return number;
}

/** Reads out a change elsewhere on the page. Used sparingly, because each one interrupts. */
function announce(text) {
  document.getElementById("announcements").textContent = text;
}
