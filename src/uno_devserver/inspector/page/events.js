// The stream of events. It reconnects for ever, so that it finds the next proxy of the workspace.
//
// Read with fetch, because EventSource can neither send the key as a header nor report a refusal.

import { EventReader } from "./sse.js";

const FIRST_WAIT_MS = 250; // a restarted proxy listens after some 300 ms
const LONGEST_WAIT_MS = 3000;
const REFUSED = 401;

export async function follow(store, key) {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    const outcome = await readOnce(store, key).catch((error) => {
      reportError(error); // the next proxy may send what this page can read
      return "failed";
    });
    // A refusal is not final either: another workspace's proxy may have the port for a while.
    store.setConnection(outcome === "refused" ? "refused" : "reconnecting");
    if (outcome === "ended") wait = FIRST_WAIT_MS;
    await pause(outcome === "refused" ? LONGEST_WAIT_MS : wait);
  }
}

/** "refused", "failed" (there was no stream), or "ended" (there was one). */
async function readOnce(store, key) {
  const headers = { Authorization: `Bearer ${key}`, Accept: "text/event-stream" };
  const response = await fetch("events", { headers, cache: "no-store" }).catch(() => null); // no server listens there
  if (!response?.ok) return response?.status === REFUSED ? "refused" : "failed";
  let outcome = "failed";
  for await (const { name, data } of messages(response.body)) {
    if (name === "closing") break;
    store.receive(name, JSON.parse(data));
    store.setConnection("connected");
    outcome = "ended";
  }
  return outcome;
}

/** Reads until the stream ends. */
async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader();
  try {
    for (;;) {
      // A killed proxy breaks the connection.
      const { value, done } = await reader.read().catch(() => ({ done: true }));
      if (done) return;
      yield* events.feed(value);
    }
  } finally {
    reader.cancel().catch(() => {}); // otherwise the browser would go on reading
  }
}

function pause(milliseconds) {
  return new Promise((resume) => setTimeout(resume, milliseconds));
}
