// The time of each step of the start: a bar from the previous step to this one, and the figures.

import { el } from "../dom.js";
import { ms } from "../format.js";
import { card } from "./card.js";

// All other steps are first requests of a client.
const STAGES = {
  __proto__: null,
  engine: "Engine loaded",
  loop: "Engine runs",
  launched: "Server launched",
  ready: "Server ready",
  connected: "Connected",
};
const LAST = "connected"; // later requests of the client would compress the bars of the start

export const startupCard = () =>
  card({
    title: "Start-up",
    pick: ({ health }) => Object.entries(health.proxy.timeline).sort(([, one], [, other]) => one - other),
    render: (stages) =>
      stages.length === 0 ? el("p", { class: "muted" }, "Nothing was reached yet.") : waterfall(stages),
  });

function waterfall(stages) {
  const end = stages.find(([stage]) => stage === LAST)?.[1] ?? stages.at(-1)[1];
  return el(
    "table",
    { class: "table waterfall" },
    el(
      "caption",
      { class: "visually-hidden" },
      "Start-up: what was reached, and when, counted from the start of the process",
    ),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Reached"),
        el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "Span")),
        el("th", { scope: "col", class: "number" }, "Took"),
        el("th", { scope: "col", class: "number" }, "After"),
      ),
    ),
    el(
      "tbody",
      {},
      stages.map(([stage, reached], index) => row(stage, index ? stages[index - 1][1] : 0, reached, end)),
    ),
  );
}

function row(stage, before, reached, end) {
  const bar = el("span", { class: "bar" });
  const whole = Math.max(end, 1);
  bar.style.left = `${(Math.min(before, end) / whole) * 100}%`;
  bar.style.width = `${((Math.min(reached, end) - Math.min(before, end)) / whole) * 100}%`;
  return el(
    "tr",
    { "data-stage": stage },
    el("th", { scope: "row" }, STAGES[stage] ?? `${stage} answered`),
    el("td", { class: "track-cell" }, el("span", { class: "track", "aria-hidden": "true" }, reached <= end && bar)),
    el("td", { class: "number muted" }, ms(reached - before)),
    el("td", { class: "number" }, ms(reached)),
  );
}
