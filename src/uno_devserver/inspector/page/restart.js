// Restarts of the server: a call that meets one waits for it and is made again, and a button asks for one. The proxy
// words its answers about restarts for agents; here are the sentences for people.

import { el, fill } from "./dom.js";
import { ms } from "./format.js";
import { createClient, waited } from "./mcp.js";

// Members of a result's _meta: the state of hot reload, or that of a server that could not be asked.
const RELOAD = "uno-devserver/hotReload";
const UNAVAILABLE = "uno-devserver/unavailable";
const STATUS = "mcpStatus"; // waits for the restart
const RESTART = "mcpRestart";
const WAIT_MS = 330_000; // a build has 300 s and a start 30 s
const PAUSE_MS = 1000; // mcpStatus answers at once if the restart waits for a call whose client has to answer
const MAX_REPEATS = 5; // of a call: each is caused by another edit
const WAITING = "The server restarts with its new code. The call is made when it is ready.";
const STARTING = "The server is starting. The call is made when it is ready.";
const COMING = new Set(["Discovering", "Launching", "Connecting", "Reconnecting"]);

/** The states of hot reload in a result, the most important one first; empty if it has none. */
function statesOf(result) {
  const { state, also } = result?._meta?.[RELOAD] ?? {};
  return [state, ...(Array.isArray(also) ? also : [])].filter((each) => typeof each === "string");
}

function wasNotRun(result) {
  return result?._meta?.[RELOAD]?.run === false;
}

/**
 * Calls a tool, and again after each start of the server that kept it from being run. Options as in mcp.js;
 * `onWait(sentence)` is called when it begins to wait. Resolves to { result, waited }; the result is that of mcpStatus
 * if the server does not start.
 */
export async function callTool(client, params, options, limits = { wait: WAIT_MS, pause: PAUSE_MS }) {
  const call = () => client.request("tools/call", params, options);
  const isOurs = params.name === STATUS || params.name === RESTART;
  let result = await call();
  let repeats = 0;
  for (let why; !isOurs && repeats < MAX_REPEATS && (why = whyToWait(result)); repeats++) {
    options.onWait?.(why);
    const status = await settled(client, STATUS, options, limits);
    const [state] = statesOf(status);
    if (state === undefined) break; // a tool of the server itself has that name
    if (state !== "ready") return { result: status, waited: true };
    result = await call();
  }
  return { result, waited: repeats > 0 };
}

/** A sentence, if the call was not run because the server is about to be ready; otherwise null. */
function whyToWait(result) {
  if (wasNotRun(result) && statesOf(result)[0] === "restarting") return WAITING;
  return COMING.has(result?._meta?.[UNAVAILABLE]?.connectionState) ? STARTING : null;
}

/** The answer of mcpStatus or mcpRestart when the restart is over, or the last one before the time limit. */
async function settled(client, tool, { signal, onProgress }, limits) {
  const end = performance.now() + limits.wait;
  const ask = (name) => client.request("tools/call", { name, arguments: {} }, { signal, onProgress });
  let status = await ask(tool);
  while (statesOf(status)[0] === "restarting" && performance.now() < end) {
    await waited(limits.pause, signal);
    status = await ask(STATUS);
  }
  return status;
}

/** Nodes for the result of a call that was not run because of a reload; null for other results. */
export function renderNotRun(result) {
  if (!wasNotRun(result)) return null;
  const why = reasons(result);
  return why && [why, el("p", {}, "The call was not run. ", nextStep(result))];
}

function nextStep(result) {
  const states = statesOf(result);
  if (states[0] === "restarting") return "Make it again when the Overview says Connected.";
  if (states.includes("buildFailed")) return "Fix the error and save: the next call builds again.";
  return ["Fix it and save: the next call starts the server again. ", overview()];
}

function overview() {
  return el("a", { href: "#overview" }, "The Overview says more");
}

// What programs have printed is fenced, as in Markdown; the sentences behind it are instructions for agents.
const PRINTED = /^(`{3,})\n([\s\S]*?)\n\1$/m;

/** Why the newest code does not answer: a sentence, and what the build or the server printed. */
function reasons(result) {
  const [state] = statesOf(result);
  if (state === "restarting") return el("p", {}, "The server has not restarted yet.");
  if (state !== "buildFailed" && state !== "failed") return null;
  const text = result.content?.find((each) => each?.type === "text")?.text ?? "";
  const printed = PRINTED.exec(text)?.[2];
  const [sentence, ...more] = text.split("\n\n")[0].split("\n");
  return [el("p", { class: "error-text" }, sentence), block(more.join("\n")), block(printed)];
}

function block(text) {
  return text && el("pre", { class: "code scroll", tabindex: "0", role: "group", "aria-label": "Printed" }, text);
}

/** A button that has the server restarted, with its outcome. It is hidden where code is not reloaded. */
export function createRestart({ key }) {
  const client = createClient({ key });
  const button = el("button", { class: "button", type: "button", onclick: press }, "Restart server");
  const cancel = el("button", { class: "button", type: "button", hidden: true, onclick: stop }, "Stop waiting");
  const outcome = el("div", { class: "restart-outcome", role: "status", "aria-label": "Restart" });
  const element = el("div", { class: "restart", hidden: true }, button, cancel, outcome);
  let running = null;

  async function press() {
    if (running) return;
    const { signal } = (running = new AbortController());
    const started = performance.now();
    button.setAttribute("aria-disabled", "true"); // not `disabled`, which would lose the focus
    cancel.hidden = false;
    say("Restarting…");
    const onProgress = ({ message }) => message && say(`Restarting: ${message}…`);
    try {
      const result = await settled(client, RESTART, { signal, onProgress }, { wait: WAIT_MS, pause: PAUSE_MS });
      fill(outcome, restarted(result, performance.now() - started));
    } catch (error) {
      say(signal.aborted ? "The restart goes on; the Overview shows its state." : error.message);
    } finally {
      if (document.activeElement === cancel) button.focus();
      button.removeAttribute("aria-disabled");
      cancel.hidden = true;
      running = null;
    }
  }

  function stop() {
    running?.abort();
  }

  function say(text) {
    fill(outcome, el("p", {}, text));
  }

  return {
    element,
    update({ health }) {
      element.hidden = !health.proxy.hotReload;
    },
  };
}

/** Nodes for the answer of mcpRestart. */
function restarted(result, milliseconds) {
  const states = statesOf(result);
  if (states[0] !== "ready") return reasons(result) ?? el("p", {}, "The server was not restarted. ", overview());
  const old = states.includes("buildFailed") || states.includes("swapFailed") || states.includes("notAgreed");
  if (old) return el("p", {}, "The old code still answers, because the new code does not run. ", overview());
  const done = states.includes("reloaded");
  return el("p", {}, `The server ${done ? "has restarted" : "is ready"} (${ms(milliseconds)}).`);
}
