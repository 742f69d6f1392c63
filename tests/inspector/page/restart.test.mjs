// What the page does with a call that meets a restart of the server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { callTool } from "../../../src/uno_devserver/inspector/page/restart.js";

const BOUND_MS = 5000; // each test takes milliseconds
const LIMITS = { wait: BOUND_MS, pause: 1 };
const reload = (state, run, ...also) => ({ _meta: { "uno-devserver/hotReload": { state, run, ...(also.length && { also }) } } });
const HELD = reload("restarting", false);
const READY = reload("ready", true);
const NEW = { content: [{ type: "text", text: "new" }] };
const GREET = { name: "greet", arguments: { name: "Ada" } };

/** A client that answers with these results in turn, the last one again and again. */
function scripted(...results) {
  const asked = [];
  const client = {
    async request(method, params, { signal } = {}) {
      signal?.throwIfAborted();
      asked.push(params.name);
      return results[Math.min(asked.length, results.length) - 1];
    },
  };
  return { client, asked };
}

test("a call that meets a restart is made again when the server is ready", { timeout: BOUND_MS }, async () => {
  const { client, asked } = scripted(HELD, READY, NEW);
  const told = [];
  const { result, waited } = await callTool(client, GREET, { onWait: (text) => told.push(text) }, LIMITS);
  assert.deepEqual([result, waited], [NEW, true]);
  assert.deepEqual(asked, ["greet", "mcpStatus", "greet"]);
  assert.equal(told.length, 1);
  assert.doesNotMatch(told[0], /mcpStatus|tool/);
});

test("a call of a server that does not restart is made once", { timeout: BOUND_MS }, async () => {
  for (const answer of [NEW, reload("restarting", true), reload("buildFailed", false), reload("reloaded", true)]) {
    const { client, asked } = scripted(answer);
    assert.deepEqual(await callTool(client, GREET, {}, LIMITS), { result: answer, waited: false });
    assert.deepEqual(asked, ["greet"]);
  }
});

test("a call that finds no server waits until there is one", { timeout: BOUND_MS }, async () => {
  const told = [];
  const coming = { isError: true, _meta: { "uno-devserver/unavailable": { connectionState: "Reconnecting" } } };
  const { client, asked } = scripted(coming, READY, NEW);
  const { result } = await callTool(client, GREET, { onWait: (text) => told.push(text) }, LIMITS);
  assert.equal(result, NEW);
  assert.deepEqual([asked, told], [["greet", "mcpStatus", "greet"], ["The server is starting. The call is made when it is ready."]]);
});

test("a call of a server that cannot be started is not made again", { timeout: BOUND_MS }, async () => {
  const down = { isError: true, _meta: { "uno-devserver/unavailable": { connectionState: "Degraded" } } };
  const { client, asked } = scripted(down);
  assert.deepEqual(await callTool(client, GREET, {}, LIMITS), { result: down, waited: false });
  assert.deepEqual(asked, ["greet"]);
});

test("a tool of the server that is called mcpStatus is not taken for ours", { timeout: BOUND_MS }, async () => {
  const coming = { isError: true, _meta: { "uno-devserver/unavailable": { connectionState: "Launching" } } };
  const { client } = scripted(coming, NEW);
  assert.equal((await callTool(client, GREET, {}, LIMITS)).result, coming);
});

test("it waits on while the server is not ready", { timeout: BOUND_MS }, async () => {
  const { client, asked } = scripted(HELD, HELD, HELD, READY, NEW);
  assert.equal((await callTool(client, GREET, {}, LIMITS)).result, NEW);
  assert.deepEqual(asked, ["greet", "mcpStatus", "mcpStatus", "mcpStatus", "greet"]);
});

test("it waits for a limited time, and tells then what is", { timeout: BOUND_MS }, async () => {
  const { client } = scripted(HELD);
  const { result } = await callTool(client, GREET, {}, { wait: 20, pause: 1 });
  assert.equal(result, HELD);
});

test("a server that does not start ends the wait, and the call is not made", { timeout: BOUND_MS }, async () => {
  const failed = reload("failed", false, "buildFailed");
  const { client, asked } = scripted(HELD, failed);
  assert.equal((await callTool(client, GREET, {}, LIMITS)).result, failed);
  assert.deepEqual(asked, ["greet", "mcpStatus"]);
});

test("a call that meets restart after restart is given up", { timeout: BOUND_MS }, async () => {
  const asked = [];
  const request = async (method, { name }) => asked.push(name) && (name === "mcpStatus" ? READY : HELD);
  const { result } = await callTool({ request }, GREET, {}, LIMITS);
  assert.equal(result, HELD);
  assert.equal(asked.filter((name) => name === "greet").length, 6);
});

test("waiting can be cancelled", { timeout: BOUND_MS }, async () => {
  const { client, asked } = scripted(HELD, HELD);
  const cancel = new AbortController();
  const calling = callTool(client, GREET, { signal: cancel.signal }, { wait: BOUND_MS, pause: 10 * BOUND_MS });
  setTimeout(() => cancel.abort(), 10);
  await assert.rejects(calling, { name: "AbortError" });
  assert.deepEqual(asked, ["greet", "mcpStatus"]);
});

test("the tools that wait by themselves are called once", { timeout: BOUND_MS }, async () => {
  for (const name of ["mcpStatus", "mcpRestart"]) {
    const { client, asked } = scripted(HELD);
    await callTool(client, { name, arguments: {} }, {}, LIMITS);
    assert.deepEqual(asked, [name]);
  }
});
