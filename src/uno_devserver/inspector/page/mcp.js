// A stateless MCP client: every request is one POST to /mcp. `request` returns the complete result or throws a readable
// Error, which says what is unknown after a lost connection.

import { parseExactly } from "./exact-json.js";
import { EventReader } from "./sse.js";

export const VERSION = "2026-07-28";
export const CONNECTION_LOST = "lost"; // the `code` of an error without an answer; the call can be repeated
export const NOT_ALLOWED = "not-allowed";
const STUCK = "stuck";

// Limits for a server that never stops asking, or whose list never ends.
const MAX_ROUNDS = 100;
const MAX_PAGES = 200;
// Without questions, the request is repeated later: soon at first, then every few seconds.
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5000;

const META = "io.modelcontextprotocol/";
const NAMED_BY = { "tools/call": "name", "prompts/get": "name", "resources/read": "uri" };
const CAPABILITIES = { elicitation: { form: {}, url: {} } };

export class McpError extends Error {
  constructor(code, message, data) {
    super(message);
    this.name = "McpError";
    this.code = code;
    this.data = data;
  }
}

/**
 * `fetch` and `endpoint` are for tests. A call's options: `signal` cancels it, `onProgress(params)` and `onLog(params)`
 * receive notifications before the answer, `onQuestions(questions)` resolves to the answers, both by question name.
 */
export function createClient({ key, endpoint = "/mcp", fetch = globalThis.fetch.bind(globalThis) }) {
  let lastId = 0;

  async function request(method, params = {}, options = {}) {
    let result = await exchange(method, params, options);
    let pause = FIRST_PAUSE_MS;
    for (let round = 0; result?.resultType === "input_required"; round++) {
      if (round === MAX_ROUNDS) throw new McpError(STUCK, `The server asked for input ${MAX_ROUNDS} times in a row.`);
      const again = { ...params };
      const questions = result.inputRequests;
      if (questions && Object.keys(questions).length) {
        if (!options.onQuestions) throw new McpError(STUCK, "The server asked what cannot be answered here.");
        again.inputResponses = await options.onQuestions(questions);
        options.signal?.throwIfAborted();
        pause = FIRST_PAUSE_MS;
      } else {
        await waited(pause, options.signal);
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
      if ("requestState" in result) again.requestState = result.requestState;
      result = await exchange(method, again, options);
    }
    return result;
  }

  /** All pages of a list: `list("tools/list", "tools")`. */
  async function list(method, member, options) {
    const entries = [];
    let cursor;
    for (let page = 0; page < MAX_PAGES; page++) {
      const result = await request(method, cursor === undefined ? {} : { cursor }, options);
      if (Array.isArray(result[member])) entries.push(...result[member]);
      if (typeof result.nextCursor !== "string" || result.nextCursor === cursor) return entries;
      cursor = result.nextCursor;
    }
    return entries;
  }

  async function exchange(method, params, options) {
    const id = ++lastId;
    const meta = {
      [META + "protocolVersion"]: VERSION,
      [META + "clientCapabilities"]: options.onQuestions ? CAPABILITIES : {},
      [META + "clientInfo"]: { name: "uno-devserver inspector", version: "1" },
    };
    if (options.onProgress) meta.progressToken = id;
    if (options.onLog) meta[META + "logLevel"] = "debug";
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } });
    const headers = {
      Authorization: `Bearer ${key}`,
      Accept: "application/json, text/event-stream",
      "Content-Type": "application/json",
      "MCP-Protocol-Version": VERSION,
      "Mcp-Method": method,
    };
    const name = params[NAMED_BY[method]];
    if (typeof name === "string") headers["Mcp-Name"] = headerValue(name);
    const { signal } = options;
    const response = await reached(() => fetch(endpoint, { method: "POST", headers, body, signal }), signal);
    return answered(await answerIn(response, id, options));
  }

  return { request, list };
}

/** Text in a form that headers can carry: not plain ASCII, or looking encoded, is encoded. */
export function headerValue(text) {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}?=`;
}

async function answerIn(response, id, options) {
  if (response.status === 401 || response.status === 403) {
    throw new McpError(NOT_ALLOWED, "Not allowed: run 'uno-devserver inspect' in the workspace, which opens the page again.");
  }
  const kind = (response.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  if (kind === "text/event-stream") {
    const message = await reached(() => answerOf(response.body, id, options), options.signal);
    if (message === undefined) throw lost();
    return message;
  }
  const text = await reached(() => response.text(), options.signal);
  const message = parsed(text);
  if (message && typeof message === "object" && ("result" in message || "error" in message)) return message;
  throw new McpError(CONNECTION_LOST, `The proxy answered with HTTP ${response.status} instead of a result.`);
}

/** The answer among the messages of a stream; undefined if it ends before. */
async function answerOf(stream, id, options) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      for (const event of events.feed(value)) {
        const message = parsed(event.data);
        if (message?.id === id && ("result" in message || "error" in message)) return message;
        if (message?.method === "notifications/progress") options.onProgress?.(message.params ?? {});
        if (message?.method === "notifications/message") options.onLog?.(message.params ?? {});
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // the stream may be broken already
  }
}

function answered(message) {
  if (message.error) {
    const { code, message: text, data } = message.error;
    throw new McpError(code, typeof text === "string" && text ? text : "The server answered with an error.", data);
  }
  return message.result ?? {};
}

/** The result of `work`; a network failure becomes a sentence, a cancelled call stays an AbortError. */
async function reached(work, signal) {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof McpError ? error : lost();
  }
}

function lost() {
  // It is unknown whether the proxy had read the request when the connection broke.
  const unknown = "The connection to the proxy was lost; whether the call was carried out is unknown.";
  return new McpError(CONNECTION_LOST, `${unknown} It can be repeated when the page says Connected.`);
}

/** Only numbers in results stay exact; those of schemas are used in calculations. */
function parsed(text) {
  try {
    const message = JSON.parse(text);
    const { result } = message;
    if (result?.structuredContent) result.structuredContent = parseExactly(text).result.structuredContent;
    return message;
  } catch {
    return undefined;
  }
}

/** Resolves after the time; rejects when the signal is aborted. */
export function waited(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, milliseconds);
    if (signal?.aborted) aborted();
    else signal?.addEventListener("abort", aborted, { once: true });
  });
}
