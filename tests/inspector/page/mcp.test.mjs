// The MCP client of the page against a server of this process that says exactly what a test wants.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import * as mcp from "../../../src/uno_devserver/inspector/page/mcp.js";
import { EventReader } from "../../../src/uno_devserver/inspector/page/sse.js";

const { CONNECTION_LOST, NOT_ALLOWED, createClient, headerValue } = mcp;

const BOUND_MS = 5000; // each test takes milliseconds; a hanging one fails instead of hanging all

/** A client whose server answers its requests, in turn, with `answers`: functions of (request, response). */
async function talking(t, ...answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text);
    requests.push({ headers: request.headers, body });
    answers[Math.min(requests.length, answers.length) - 1](body, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.closeAllConnections() ?? server.close());
  const endpoint = `http://127.0.0.1:${server.address().port}/mcp`;
  return { client: createClient({ key: "secret", endpoint }), requests, server };
}

const json = (response, message, status = 200) => {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(message));
};
const result = (value) => (body, response) => json(response, { jsonrpc: "2.0", id: body.id, result: value });
const stream = (...messages) => (body, response) => {
  response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
  for (const message of messages) response.write(`event: message\ndata: ${JSON.stringify(message(body))}\n\n`);
  response.end();
};
const note = (method, params) => () => ({ jsonrpc: "2.0", method, params });
const final = (value) => (body) => ({ jsonrpc: "2.0", id: body.id, result: value });

test("a request says in headers and body what the modern era wants to know", { timeout: BOUND_MS }, async (t) => {
  const { client, requests } = await talking(t, result({ content: [] }));
  await client.request("tools/call", { name: "größe", arguments: { a: 1 } }, { onProgress() {}, onLog() {} });
  const { headers, body } = requests[0];
  assert.equal(headers.authorization, "Bearer secret");
  assert.equal(headers.accept, "application/json, text/event-stream");
  assert.equal(headers["mcp-protocol-version"], "2026-07-28");
  assert.equal(headers["mcp-method"], "tools/call");
  assert.equal(headers["mcp-name"], "=?base64?Z3LDtsOfZQ==?="); // größe
  assert.deepEqual([body.method, body.params.name, body.params.arguments], ["tools/call", "größe", { a: 1 }]);
  const meta = body.params._meta;
  assert.equal(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
  assert.deepEqual(meta["io.modelcontextprotocol/clientCapabilities"], {});
  assert.equal(meta["io.modelcontextprotocol/logLevel"], "debug");
  assert.equal(meta.progressToken, body.id);
});

test("names that a header can carry are sent as they are", () => {
  assert.equal(headerValue("find todos"), "find todos");
  assert.equal(headerValue(" padded"), "=?base64?IHBhZGRlZA==?=");
  assert.equal(headerValue("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
});

test("progress and log come before the result of a stream", { timeout: BOUND_MS }, async (t) => {
  const { client } = await talking(
    t,
    stream(
      note("notifications/progress", { progress: 1, total: 2 }),
      note("notifications/message", { level: "info", data: "half" }),
      note("notifications/other", {}),
      final({ content: [{ type: "text", text: "done" }] }),
    ),
  );
  const heard = [];
  const said = await client.request("tools/call", { name: "x" }, {
    onProgress: (params) => heard.push(params.progress),
    onLog: (params) => heard.push(params.data),
  });
  assert.deepEqual(heard, [1, "half"]);
  assert.equal(said.content[0].text, "done");
});

test("a question is answered by calling again", { timeout: BOUND_MS }, async (t) => {
  const asked = { who: { method: "elicitation/create", params: { message: "Who?" } } };
  const { client, requests } = await talking(
    t,
    result({ resultType: "input_required", inputRequests: asked, requestState: "s1" }),
    result({ resultType: "complete", content: [] }),
  );
  const answer = { who: { action: "accept", content: { name: "Ada" } } };
  const seen = [];
  const onQuestions = async (questions) => (seen.push(questions), answer);
  const said = await client.request("tools/call", { name: "x", arguments: { a: 1 } }, { onQuestions });
  assert.deepEqual(seen, [asked]);
  assert.equal(said.resultType, "complete");
  const [first, second] = requests.map(({ body }) => body.params);
  assert.deepEqual(first._meta["io.modelcontextprotocol/clientCapabilities"], { elicitation: { form: {}, url: {} } });
  assert.deepEqual([second.name, second.arguments, second.requestState], ["x", { a: 1 }, "s1"]);
  assert.deepEqual(second.inputResponses, answer);
});

test("a server that only wants to be asked again later is", { timeout: BOUND_MS }, async (t) => {
  const later = result({ resultType: "input_required", requestState: "s" });
  const { client, requests } = await talking(t, later, later, result({ content: [] }));
  await client.request("tools/call", { name: "x" });
  assert.deepEqual(requests.map(({ body }) => body.params.requestState), [undefined, "s", "s"]);
});

test("an error has its code and message, whatever the status", { timeout: BOUND_MS }, async (t) => {
  const error = { code: -32602, message: "no such tool", data: { a: 1 } };
  const { client } = await talking(t, (body, response) => json(response, { jsonrpc: "2.0", id: body.id, error }, 400));
  await assert.rejects(client.request("tools/call", { name: "x" }), (thrown) => {
    assert.deepEqual([thrown.code, thrown.message, thrown.data], [-32602, "no such tool", { a: 1 }]);
    return thrown instanceof Error;
  });
});

test("an unknown key says what to do", { timeout: BOUND_MS }, async (t) => {
  const { client } = await talking(t, (body, response) => json(response, { error: "the key is unknown" }, 401));
  await assert.rejects(client.request("tools/list"), { code: NOT_ALLOWED, message: /uno-devserver inspect/ });
});

test("an answer that is none is told with its status", { timeout: BOUND_MS }, async (t) => {
  const { client } = await talking(t, (body, response) => response.writeHead(502).end("<html>"));
  await assert.rejects(client.request("tools/list"), { code: CONNECTION_LOST, message: /HTTP 502/ });
});

test("a stream that ends before its answer leaves the outcome open", { timeout: BOUND_MS }, async (t) => {
  const { client } = await talking(t, stream(note("notifications/progress", { progress: 1 })));
  await assert.rejects(client.request("tools/call", { name: "x" }), { code: CONNECTION_LOST, message: /unknown/ });
});

test("a proxy that dies during a call leaves the outcome open", { timeout: BOUND_MS }, async (t) => {
  const { client } = await talking(t, (body, response) => response.destroy());
  await assert.rejects(client.request("tools/call", { name: "x" }), { code: CONNECTION_LOST, message: /unknown/ });
});

test("a call can be repeated when the proxy is back", { timeout: BOUND_MS }, async (t) => {
  const { client } = await talking(t, (body, response) => response.destroy(), result({ content: [] }));
  await assert.rejects(client.request("tools/call", { name: "x" }), { code: CONNECTION_LOST });
  assert.deepEqual(await client.request("tools/call", { name: "x" }), { content: [] });
});

test("a cancelled call ends at once, and its connection with it", { timeout: BOUND_MS }, async (t) => {
  const closed = Promise.withResolvers();
  const cancelling = new AbortController();
  const { client } = await talking(t, (body, response) => {
    response.on("close", closed.resolve);
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(`data: ${JSON.stringify(note("notifications/progress", { progress: 1 })())}\n\n`);
  });
  const call = client.request("tools/call", { name: "x" }, {
    signal: cancelling.signal,
    onProgress: () => cancelling.abort(),
  });
  await assert.rejects(call, { name: "AbortError" });
  await closed.promise;
});

test("an answer to another request is not taken for this one's", { timeout: BOUND_MS }, async (t) => {
  const other = (body) => ({ jsonrpc: "2.0", id: body.id + 1, result: { whose: "another's" } });
  const { client } = await talking(t, stream(other, final({ whose: "mine" })));
  assert.deepEqual(await client.request("tools/call"), { whose: "mine" });
});

test("the numbers of structured content are those that the server wrote", { timeout: BOUND_MS }, async (t) => {
  const id = "9007199254740993";
  const { client } = await talking(t, (body, response) => {
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(`{"jsonrpc": "2.0", "id": ${body.id}, "result": {"structuredContent": {"id": ${id}}}}`);
  });
  assert.equal(JSON.stringify(await client.request("tools/call")), `{"structuredContent":{"id":${id}}}`);
});

test("a list is read to its last page", { timeout: BOUND_MS }, async (t) => {
  const { client, requests } = await talking(
    t,
    result({ tools: [{ name: "a" }], nextCursor: "2" }),
    result({ tools: [{ name: "b" }] }),
  );
  assert.deepEqual(await client.list("tools/list", "tools"), [{ name: "a" }, { name: "b" }]);
  assert.deepEqual(requests.map(({ body }) => body.params.cursor), [undefined, "2"]);
});

test("events are read however they are cut", () => {
  const text = ": hello\r\n\r\nevent: call\r\ndata: 1\r\ndata: 2\r\n\r\ndata:x\n\ndata\n\nevent: none\n\n";
  const whole = [
    { name: "call", data: "1\n2" },
    { name: "message", data: "x" },
    { name: "message", data: "" },
  ];
  for (let size = 1; size <= text.length; size++) {
    const reader = new EventReader();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...reader.feed(text.slice(at, at + size)));
    assert.deepEqual(events, whole, `in pieces of ${size}`);
  }
});
