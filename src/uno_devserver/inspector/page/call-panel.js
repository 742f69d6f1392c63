// A form, its call, and the result. There is one call at a time, which can be cancelled; its outcome is shown with its
// time, and the form keeps its input.

import { badge, el, fill } from "./dom.js";
import { ms, plural, ticking } from "./format.js";
import { createForm } from "./forms.js";
import { answerAll } from "./server-questions.js";
import { jsonBlock } from "./results.js";

const TICK_MS = 100;
const LOG_LINES = 500; // of one call; the Log view has the rest
const OUTCOMES = { ok: ["ok", "OK"], error: ["bad", "Error"], cancelled: ["warn", "Cancelled"] };

/**
 * `field` is null if there is nothing to fill in. `run(values, options)` makes the call (options as in mcp.js and restart.js),
 * `render(result)` gives { outcome: "ok" | "error", nodes }. `memory`, if given, keeps the values of the last call.
 * Returns { element, submit, change }; `change` takes another field, and keeps the input and a running call.
 */
export function createCalling({ field, label, verb, run, render, memory }) {
  let form = field && createForm(field, memory?.read());
  const call = el("button", { class: "button primary", type: "submit" }, verb);
  const cancel = el("button", { class: "button", type: "button", hidden: true, onclick: stop }, "Cancel");
  const progress = createProgress();
  const questions = el("div", { class: "questions" });
  const result = el("div", { class: "result", role: "region", "aria-label": "Result", "aria-live": "polite" });
  const attributes = { class: "call", "aria-label": label, novalidate: true, onsubmit: submit };
  const actions = el("div", { class: "actions" }, call, cancel, progress.element, form?.tools);
  // Questions are forms of their own beside this one, because forms cannot be nested.
  const element = el("div", { class: "calling" }, el("form", attributes, form?.element, actions), questions, result);
  let running = null;

  async function submit(event) {
    event?.preventDefault();
    if (running) return;
    const values = form ? form.read() : {};
    if (values === undefined) return;
    memory?.write(values);
    running = new AbortController();
    begin();
    const started = performance.now();
    const log = [];
    const took = () => performance.now() - started;
    try {
      const said = await run(values, {
        signal: running.signal,
        onProgress: progress.tell,
        onWait: (sentence) => fill(result, el("p", { class: "muted" }, sentence)),
        onLog: (entry) => log.length < LOG_LINES && log.push(entry),
        onQuestions: async (asked) => {
          const answers = await answerAll(asked, questions, running.signal);
          cancel.focus(); // the question that had the focus was removed
          return answers;
        },
      });
      const { outcome, nodes } = render(said);
      show(outcome, took(), nodes, log);
    } catch (error) {
      if (running.signal.aborted) show("cancelled", took(), el("p", {}, "The call was cancelled."), log);
      else show("error", took(), problem(error), log);
    } finally {
      running = null;
      end();
    }
  }

  function stop() {
    running?.abort();
  }

  function change(other) {
    form = form.replace(other);
  }

  function begin() {
    call.setAttribute("aria-disabled", "true"); // not `disabled`, which would lose the focus
    cancel.hidden = false;
    progress.start();
    delete result.dataset.outcome;
    fill(result);
  }

  function end() {
    if (document.activeElement === cancel) call.focus();
    call.removeAttribute("aria-disabled");
    cancel.hidden = true;
    progress.stop();
    fill(questions);
  }

  function show(outcome, milliseconds, nodes, log) {
    const [kind, word] = OUTCOMES[outcome];
    const time = el("span", { class: "muted number" }, ms(milliseconds));
    result.dataset.outcome = outcome;
    fill(result, el("p", { class: "result-head" }, badge(kind, word), " ", time), nodes, log.length > 0 && said(log));
  }

  return { element, submit, change };
}

function problem(error) {
  const code = typeof error.code === "number" ? el("p", { class: "muted" }, `Code ${error.code}`) : null;
  const data = error.data === undefined ? null : jsonBlock(error.data, "Data of the error");
  return [el("p", { class: "error-text" }, error.message), code, data];
}

function said(log) {
  const lines = log.map(({ level, logger, data }) => {
    const text = typeof data === "string" ? data : JSON.stringify(data);
    return el("li", {}, el("span", { class: "muted" }, [level, logger].filter(Boolean).join(" ")), " ", text);
  });
  const title = el("summary", {}, `Log of the call (${plural(log.length, "line")})`);
  return el("details", {}, title, el("ul", { class: "said mono" }, lines));
}

/** Elapsed time and progress. Not read out; the result is. */
function createProgress() {
  const bar = el("progress", { "aria-label": "Progress", hidden: true });
  const time = el("span", { class: "muted number" });
  const message = el("span", { class: "muted progress-text" });
  const element = el("span", { class: "progress", hidden: true }, bar, time, message);
  let timer = 0;

  function start() {
    const started = performance.now();
    const tick = () => (time.textContent = ticking(performance.now() - started));
    bar.hidden = true;
    message.textContent = "";
    element.hidden = false;
    tick();
    timer = setInterval(tick, TICK_MS);
  }

  function tell(params) {
    const { progress: done, total, message: text } = params;
    const measured = Number.isFinite(done) && Number.isFinite(total) && total > 0; // a bar throws for other values
    bar.hidden = false;
    if (measured) Object.assign(bar, { max: total, value: Math.min(done, total) });
    else bar.removeAttribute("value");
    // Without a total the number has no meaning of its own; the proxy's are tiny, so that those of the server are larger.
    message.textContent = [measured ? `${done} of ${total}` : text ? "" : done, text].filter(Boolean).join(" · ");
  }

  function stop() {
    clearInterval(timer);
    element.hidden = true;
  }

  return { element, start, tell, stop };
}
