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
const MAIN = "main"; // the name of the workspace's own server, where there are several
const WAIT_MS = 330_000; // a build has 300 s and a start 30 s
const PAUSE_MS = 1000; // mcpStatus answers at once if the restart waits for a call whose client has to answer
const MAX_REPEATS = 5; // of a call: each is caused by another edit
const WAITING = "The server restarts with its new code. The call is made when it is ready.";
const STARTING = "The server is starting. The call is made when it is ready.";
const AGREE = "Run 'uno-devserver trust' in the workspace to use the new code and settings.";
// Why a server that is ready does not run the newest code, by the states beside `ready`.
const NOT_NEWEST = {
  notAgreed: `The server runs the code and settings that you agreed to last. ${AGREE} `,
  buildFailed: "The old code still answers, because the new code does not build. ",
  swapFailed: "The old code still answers, because the new code does not start. ",
  oldOutput: "The server is ready, but what it starts was not built again after its code had changed. ",
  unchecked: "The server is ready, but whether its code has changed could not be checked. ",
  extensionBuildFailed: "The server is ready, but the new code of the extension does not build. ",
};
const COMING = new Set(["Discovering", "Launching", "Connecting", "Reconnecting"]);

/** The states of hot reload in a result, the most important one first; empty if it has none. */
function statesOf(result) {
  const { state, also } = result?._meta?.[RELOAD] ?? {};
  return [state, ...(Array.isArray(also) ? also : [])].filter((each) => typeof each === "string");
}

function wasNotRun(result) {
  return result?._meta?.[RELOAD]?.run === false || isUnavailable(result);
}

function isUnavailable(result) {
  return result?._meta?.[UNAVAILABLE] !== undefined;
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
async function settled(client, tool, { signal, onProgress }, limits, given = {}) {
  const end = performance.now() + limits.wait;
  const ask = (name, values = {}) => client.request("tools/call", { name, arguments: values }, { signal, onProgress });
  let status = await ask(tool, given);
  while (statesOf(status)[0] === "restarting" && performance.now() < end) {
    await waited(limits.pause, signal);
    status = await ask(STATUS);
  }
  return status;
}

/** Nodes for the result of a call that was not run because of a reload, or without a server; null for other results. */
export function renderNotRun(result) {
  if (!wasNotRun(result)) return null;
  const why = reasons(result);
  return why && [why, el("p", {}, "The call was not run. ", nextStep(result))];
}

function nextStep(result) {
  const states = statesOf(result);
  if (states[0] === "restarting") return "Make it again when the Overview says Connected.";
  if (states.includes("notAgreed")) return AGREE;
  if (states.includes("buildFailed")) return "Fix the error and save: the next call builds again.";
  return ["Fix it and save: the next call starts the server again. ", overview()];
}

function overview() {
  return el("a", { href: "#overview" }, "The Overview says more");
}

// What programs have printed is fenced, as in Markdown, or follows the sentence. The instructions for agents follow it,
// or the sentence that the call has not been run; without these, they are the last paragraph.
const PRINTED = /(?:\s*It printed last:)?\s*^(`{3,})\n([\s\S]*?)\n\1$/m;
const NOT_RUN = /\s*This (?:call|request) has not been run\./;
const LAST_PARAGRAPH = /\n\n(?![\s\S]*\n\n)/;

/** Why the newest code does not answer: a sentence, and what the build or the server printed. */
function reasons(result) {
  const [state] = statesOf(result);
  if (state === "restarting") return el("p", {}, "The server has not restarted yet.");
  if (state === undefined && !isUnavailable(result)) return null;
  const text = result.content?.find((each) => each?.type === "text")?.text ?? "";
  const end = [PRINTED, NOT_RUN, LAST_PARAGRAPH].map((each) => text.search(each)).find((index) => index >= 0);
  const [sentence, ...more] = text.slice(0, end).split("\n");
  return [el("p", { class: "error-text" }, sentence), block(more.join("\n")), block(PRINTED.exec(text)?.[2])];
}

function block(text) {
  return text && el("pre", { class: "code scroll", tabindex: "0", role: "group", "aria-label": "Printed" }, text);
}

/** A button that has the server restarted, with its outcome. It is hidden where the server runs and is not reloaded. */
export function createRestart({ key }) {
  const client = createClient({ key });
  const button = el("button", { class: "button", type: "button", onclick: press }, "Restart server");
  const cancel = el("button", { class: "button", type: "button", hidden: true, onclick: stop }, "Stop waiting");
  const outcome = el("div", { class: "restart-outcome", role: "status", "aria-label": "Restart" });
  const which = el("select", { "aria-label": "Server to restart", hidden: true });
  const element = el("div", { class: "restart", hidden: true }, which, button, cancel, outcome);
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
      const limits = { wait: WAIT_MS, pause: PAUSE_MS };
      const given = which.hidden ? {} : { server: which.value };
      const result = await settled(client, RESTART, { signal, onProgress }, limits, given);
      fill(outcome, renderRestarted(result, performance.now() - started));
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
      const { servers = [], proxy } = health;
      const failed = ({ state }) => state === "Degraded"; // then it is started again
      const main = proxy.hotReload || (!servers.length && failed(proxy)) ? [MAIN] : [];
      const further = servers.filter((server) => server.hotReload || failed(server)).map((server) => server.name);
      const names = [...main, ...further];
      element.hidden = names.length === 0;
      which.hidden = !health.servers;
      const known = [...which.options].map((option) => option.value);
      if (JSON.stringify(names) === JSON.stringify(known)) return; // a choice that was made stays
      fill(
        which,
        names.map((name) => el("option", { value: name }, name)),
      );
    },
  };
}

/** Nodes for the answer of mcpRestart. */
export function renderRestarted(result, milliseconds) {
  const states = statesOf(result);
  if (states[0] !== "ready") return reasons(result) ?? el("p", {}, "The server was not restarted. ", overview());
  const why = Object.keys(NOT_NEWEST).find((state) => states.includes(state));
  if (why) return el("p", {}, NOT_NEWEST[why], overview());
  const done = states.includes("reloaded");
  return el("p", {}, `The server ${done ? "has restarted" : "is ready"} (${ms(milliseconds)}).`);
}
