// Whether edits of the code are reloaded, or why not, and the age of the lists.

import { age } from "../ages.js";
import { badge, el } from "../dom.js";
import { moment, plural } from "../format.js";
import { kindOf } from "../state-kinds.js";
import { pathText } from "../paths.js";
import { withCommands } from "../remedy.js";
import { card, facts } from "./card.js";

export const BY_ANOTHER = "By the proxy that started the Host; its own page tells of the reloads.";

export const hotReloadCard = () =>
  card({
    title: "Hot reload",
    pick: ({ health: { proxy } }) => ({ now: proxy.hotReload && brief(proxy.hotReload), off: proxy.hotReloadOff }),
    render: ({ now, off }) => (now ? reloading(now) : notReloading(off)),
  });

/** Without the counts of checks, which change with every call and would redraw this card each time. */
function brief({ owner, state, strategy, packages, builds, restarts, failing, lastRestart }) {
  return { owner, state, strategy, packages, builds, restarts, failing, lastRestart };
}

function reloading({ owner, state, strategy, packages, builds, restarts, failing, lastRestart }) {
  if (owner === false) return [badge("ok", "On"), el("p", { class: "why" }, BY_ANOTHER)]; // no more is known then
  const last = moment(lastRestart?.at);
  return [
    el(
      "p",
      {},
      failing.length ? badge("warn", "New code does not run") : badge(kindOf(state), state === "idle" ? "On" : state),
    ),
    facts([
      ["Strategy", el("span", { class: "mono" }, strategy)],
      [
        "Watches",
        el(
          "ul",
          {},
          packages.map((each) => el("li", {}, watched(each))),
        ),
      ],
      ["So far", `${plural(builds, "build")}, ${plural(restarts, "restart")}`],
      ["Last restart", last && age(last)],
    ]),
    el("p", { class: "more" }, el("a", { href: "#reloads" }, "All reloads")),
  ];
}

function watched({ root, kind, files }) {
  const known = [kind, files !== null && plural(files, "file")].filter(Boolean);
  return [pathText(root), el("span", { class: "muted" }, ` ${known.join(", ")}`)];
}

function notReloading(off) {
  if (off) return [badge("quiet", "Off"), el("p", { class: "why" }, withCommands(`Because ${off}.`))];
  return [
    badge("quiet", "Not known yet"),
    el("p", { class: "why" }, "The proxy has not looked yet whether there is code to watch."),
  ];
}

export const listsCard = () =>
  card({
    title: "Lists of tools, resources and prompts",
    pick: ({ health: { proxy } }) => ({
      fresh: proxy.listsFresh,
      stale: proxy.catalogueStale,
      age: proxy.catalogueAgeSeconds,
    }),
    render: ({ fresh, stale, age: seconds }) => [
      el(
        "p",
        {},
        fresh ? badge("ok", "Current") : stale ? badge("warn", "Of another SDK") : badge("quiet", "Remembered"),
      ),
      el("p", { class: "why" }, meaning(fresh, stale, seconds)),
      seconds !== null && facts([["Read", age(new Date(Date.now() - seconds * 1000))]]),
    ],
  });

function meaning(fresh, stale, seconds) {
  if (fresh) return "They come from the server that is connected now.";
  if (stale)
    return "They were read when the workspace had another Uno SDK. The server's own follow when it is connected.";
  if (seconds === null) return "The server has not been asked before. Its own follow when it is connected.";
  return "They are those of the last time. The server's own follow when it is connected.";
}
