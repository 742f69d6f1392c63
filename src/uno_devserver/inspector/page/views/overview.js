// The state of the proxy and its server with a button to restart it, the issues with their next steps, and the times of the start.

import { addInsCard } from "../cards/addins.js";
import { hotReloadCard, listsCard } from "../cards/hotreload.js";
import { issuesCard, lastExitCard } from "../cards/issues.js";
import { furtherServersCard } from "../cards/servers.js";
import { startupCard } from "../cards/startup.js";
import { stateCard } from "../cards/state.js";
import { el, empty } from "../dom.js";
import { createRestart } from "../restart.js";

export function create(context) {
  const restart = createRestart(context);
  const wide = [stateCard(), furtherServersCard(), issuesCard(), lastExitCard()];
  const left = [startupCard(), listsCard()];
  const right = [addInsCard(), hotReloadCard()];
  const cards = [...wide, ...left, ...right];
  const waiting = empty("Waiting for the proxy…", "It tells how it is as soon as it answers.");
  const grid = el(
    "div",
    { class: "cards", hidden: true },
    wide.map((card) => card.element),
    el(
      "div",
      { class: "stacks" },
      [left, right].map((stack) =>
        el(
          "div",
          { class: "stack" },
          stack.map((card) => card.element),
        ),
      ),
    ),
  );

  return {
    element: el("section", {}, el("h2", {}, "Overview"), restart.element, waiting, grid),
    update(state, change) {
      if (!state.ready || !["snapshot", "health"].includes(change)) return;
      waiting.hidden = true;
      grid.hidden = false;
      for (const part of [restart, ...cards]) part.update(state);
    },
  };
}
