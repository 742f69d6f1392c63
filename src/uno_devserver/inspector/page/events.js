// The stream of events, read for ever: whatever becomes of the proxy, the next one of the workspace is found again.
//
// It is read with fetch, because EventSource cannot send the token as a header and tells nothing of a refusal.

import { EventReader } from "./sse.js";

const FIRST_WAIT_MS = 250; // a proxy that is started again listens after some 300 ms
const LONGEST_WAIT_MS = 3000;
const REFUSED = 401;

/** Returns a function that ends it. */
export function follow(store, token) {
  const ending = new AbortController();
  keepReading(store, token, ending.signal);
  return () => ending.abort();
}

async function keepReading(store, token, signal) {
  let wait = FIRST_WAIT_MS;
  while (!signal.aborted) {
    const outcome = await readOnce(store, token, signal);
    if (signal.aborted) return;
    // Another workspace's proxy may have taken the port for a while: also a refusal is not for ever.
    store.setConnection(outcome === "refused" ? "refused" : "reconnecting");
    wait = outcome === "ended" ? FIRST_WAIT_MS : Math.min(wait * 2, LONGEST_WAIT_MS);
    await pause(outcome === "refused" ? LONGEST_WAIT_MS : wait);
  }
}

/** "refused", "failed" (there was no stream), or "ended" (there was one). */
async function readOnce(store, token, signal) {
  let connected = false;
  try {
    const response = await fetch("events", {
      headers: { Authorization: `Bearer ${token}`, Accept: "text/event-stream" },
      cache: "no-store",
      signal,
    });
    if (response.status === REFUSED) return "refused";
    if (!response.ok) return "failed";
    for await (const { name, data } of messages(response.body)) {
      if (name === "closing") break;
      store.receive(name, JSON.parse(data));
      connected = true;
      store.setConnection("connected");
    }
  } catch {
    // The proxy has gone, or is not there yet; what counts is that it is tried again.
  }
  return connected ? "ended" : "failed";
}

async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield* events.feed(value);
    }
  } finally {
    reader.cancel().catch(() => {}); // a stream that is only left would be read on behind our back
  }
}

function pause(milliseconds) {
  return new Promise((resume) => setTimeout(resume, milliseconds));
}
