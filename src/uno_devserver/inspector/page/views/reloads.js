// Hot reloads, newest first: the files that changed, the times of build and restart, and the changes of the tools.

import { age } from "../ages.js";
import { BY_ANOTHER } from "../cards/hotreload.js";
import { badge, el, empty, fill } from "../dom.js";
import { moment, plural, seconds, when } from "../format.js";
import { kindOf } from "../state-kinds.js";
import { pathText } from "../paths.js";
import { withCommands } from "../remedy.js";

const LISTS = {
  __proto__: null,
  same: "The lists are the same.",
  grown: "The lists have grown.",
  changed: "The lists have changed.",
};
const CHANGES = [
  ["added", "ok", "+"],
  ["removed", "bad", "−"],
  ["grown", "busy", "↑"],
  ["changed", "warn", "~"],
];

export function create() {
  const summary = el("div", { class: "reload-summary" });
  const list = el("ol", { class: "reloads", reversed: true });
  const nothing = el("div");
  let shown = "";

  return {
    element: el("section", {}, el("h2", {}, "Reloads"), summary, nothing, list),
    update(state, change) {
      if (!state.ready || !["snapshot", "health"].includes(change)) return;
      const { hotReload, hotReloadOff } = state.health.proxy;
      const text = JSON.stringify([hotReload, hotReloadOff]);
      if (text === shown) return; // otherwise a selection would be lost
      shown = text;
      const history = hotReload?.history ?? [];
      fill(summary, hotReload && hotReload.owner !== false && summarised(hotReload));
      fill(list, history.toReversed().map(entry));
      fill(nothing, history.length === 0 && absence(hotReload, hotReloadOff));
    },
  };
}

function absence(hotReload, off) {
  if (hotReload?.owner === false) return empty("Hot reload is on.", BY_ANOTHER);
  if (hotReload)
    return empty("No reloads yet.", "Edit the code of the server and call a tool: what happens then is shown here.");
  const why = empty(off ? "Hot reload is off." : "It is not known yet whether there is hot reload.");
  why.append(
    el(
      "p",
      { class: "muted" },
      off ? withCommands(`Because ${off}.`) : "The proxy has not looked yet whether there is code to watch.",
    ),
  );
  return why;
}

function summarised({ state, strategy, checks, builds, restarts, failing }) {
  return el(
    "p",
    {},
    failing.length ? badge("warn", "New code does not run") : badge(kindOf(state), state),
    ` ${plural(checks, "check")}, ${plural(builds, "build")}, ${plural(restarts, "restart")}, strategy `,
    el("code", {}, strategy),
  );
}

function entry(reload) {
  const { at, role, changed, build, buildSeconds, restartSeconds, ok, lists, problem, logFile, tools, client } = reload;
  const date = moment(at);
  return el(
    "li",
    { class: "card reload", "data-ok": ok !== false },
    el(
      "h3",
      { class: "reload-head" },
      date && el("span", { class: "number" }, when(date)),
      outcome(reload),
      el("span", { class: "muted" }, role, date && [", ", age(date)]),
    ),
    changed.length
      ? el(
          "ul",
          { class: "changed-files", "aria-label": "What changed" },
          changed.map((path) => el("li", {}, pathText(path))),
        )
      : el("p", { class: "muted" }, "No file had changed: the restart was asked for."),
    el(
      "dl",
      { class: "reload-times" },
      build ? time("Build", seconds(buildSeconds), build) : ok !== false && time("Build", "none needed"),
      restartSeconds !== undefined && time("Restart", seconds(restartSeconds)),
      client !== undefined && time("Client process", client ? "restarted" : "not restarted"),
    ),
    lists && el("p", {}, LISTS[lists] ?? lists),
    tools && toolChanges(tools),
    problem && el("pre", { class: "code scroll", tabindex: "0", role: "group", "aria-label": "Problem" }, problem),
    logFile && el("p", { class: "muted small" }, "The whole output: ", pathText(logFile)),
  );
}

function outcome({ ok, build, restartSeconds }) {
  if (ok !== false) return badge("ok", "Reloaded");
  if (restartSeconds !== undefined) return badge("bad", "Start failed");
  return badge("bad", build ? "Build failed" : "Not loaded"); // the code needs no build, but a check found errors
}

function time(name, value, note = null) {
  return el(
    "div",
    {},
    el("dt", { class: "muted" }, name),
    el("dd", {}, el("span", { class: "number" }, value), note && el("span", { class: "mono muted small" }, ` ${note}`)),
  );
}

function toolChanges(tools) {
  const items = CHANGES.flatMap(([change, kind, sign]) =>
    (tools[change] ?? []).map((name) =>
      el(
        "li",
        {},
        el(
          "span",
          { class: "badge mono", "data-kind": kind },
          `${sign} `,
          el("span", { class: "visually-hidden" }, `${change} `),
          name,
        ),
      ),
    ),
  );
  return items.length > 0 && el("ul", { class: "tool-changes", "aria-label": "Tools that changed" }, items);
}
