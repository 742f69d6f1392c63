// One call in the table: a row, and below it, when it is opened, the arguments and the result.

import { el, fill, unique } from "./dom.js";
import { parseExactly } from "./exact-json.js";
import { clock, moment, ms, ticking, when } from "./format.js";
import { kindOf } from "./state-kinds.js";

const MOST_ASKED = 200; // characters of the arguments; a line has no room for more

export class CallRow {
  call;
  text = ""; // the text that is searched
  elements; // the row, and the row with the details

  #badge = el("span", { class: "badge" });
  #why = el("p", { class: "muted why-waiting" });
  #queued = el("td", { role: "cell", class: "number wide-only" });
  #running = el("td", { role: "cell", class: "number wide-only" });
  #total = el("td", { role: "cell", class: "number" });
  #details = el("td", { role: "cell", colspan: "6" });
  #button;
  #row;
  #opened;

  constructor(call) {
    this.#opened = el("tr", { class: "opened", role: "row", id: unique("call"), hidden: true }, this.#details);
    const { method, name, client, at } = call;
    this.#button = el(
      "button",
      {
        class: "opener",
        type: "button",
        "aria-expanded": "false",
        "aria-controls": this.#opened.id,
        onclick: () => this.#toggle(),
      },
      el(
        "span",
        {},
        el("span", { class: "call-name mono" }, name ?? method),
        name !== null && el("span", { class: "call-method muted small" }, method),
      ),
    );
    this.#row = el(
      "tr",
      { role: "row", "data-call": call.id },
      el(
        "th",
        { scope: "row", role: "rowheader" },
        this.#button,
        el("p", { class: "call-asked muted small" }, el("time", {}, when(moment(at))), asked(call.arguments)),
      ),
      el("td", { role: "cell", class: "wide-only" }, client),
      el("td", { role: "cell" }, this.#badge, this.#why),
      this.#queued,
      this.#running,
      this.#total,
    );
    this.elements = [this.#row, this.#opened];
    this.show(call);
  }

  get isLive() {
    return this.call.totalMs === null;
  }

  set hidden(hidden) {
    this.#row.hidden = hidden;
    this.#opened.hidden = hidden || !this.#isOpen;
  }

  /** Updates the row. */
  show(call) {
    this.call = call;
    this.text = [call.method, call.name, call.client, call.arguments, call.outcome].join("\n").toLowerCase();
    this.#row.dataset.state = call.state;
    this.#badge.dataset.kind = kindOf(call.state);
    this.#badge.textContent = call.state;
    this.#why.textContent = call.why;
    this.#why.hidden = call.why === "";
    this.#queued.textContent = ms(call.queuedMs);
    this.#running.textContent = ms(call.runningMs);
    this.#total.textContent = ms(call.totalMs);
    if (this.#isOpen) this.#fillDetails();
  }

  /** Updates the times of a running call; `now` is the proxy's clock. */
  tick(now) {
    const passed = now - this.call.at * 1000;
    const runs = this.call.state === "running";
    this.#queued.textContent = runs ? ms(this.call.queuedMs) : ticking(passed);
    this.#running.textContent = runs ? ticking(passed - this.call.queuedMs) : "–";
    this.#total.textContent = ticking(passed);
  }

  close() {
    if (!this.#isOpen) return;
    this.#toggle();
    this.#button.focus();
  }

  get #isOpen() {
    return this.#button.getAttribute("aria-expanded") === "true";
  }

  #toggle() {
    this.#button.setAttribute("aria-expanded", !this.#isOpen);
    this.#opened.hidden = !this.#isOpen;
    if (this.#isOpen) this.#fillDetails();
  }

  #fillDetails() {
    const { at, client, method, queuedMs, runningMs, outcome, arguments: asked } = this.call;
    fill(
      this.#details,
      el(
        "p",
        { class: "muted call-facts" },
        `${method} by ${client} at ${clock(moment(at), true)}, ${ms(queuedMs)} queued, ${ms(runningMs)} running`,
      ),
      el("h3", {}, "Arguments"),
      el(
        "pre",
        { class: "code scroll", tabindex: "0", role: "group", "aria-label": "Arguments" },
        pretty(asked) || "None",
      ),
      el("h3", {}, "Outcome"),
      el(
        "pre",
        { class: "code scroll", tabindex: "0", role: "group", "aria-label": "Outcome" },
        outcome || (this.isLive ? "It is under way." : "Nothing"),
      ),
    );
  }
}

/** The arguments in one line; the details have all of them. */
function asked(text) {
  return /^(\{\s*\})?$/.test(text) ? "" : el("span", { class: "mono" }, text.slice(0, MOST_ASKED));
}

/** Arguments that were cut are not valid JSON, and are shown unchanged. */
function pretty(text) {
  try {
    return JSON.stringify(parseExactly(text), null, 2);
  } catch {
    return text;
  }
}
