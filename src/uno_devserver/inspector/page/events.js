// The stream of events, read for ever: whatever becomes of the proxy, the next one of the workspace is found again.
//
// It is read with fetch, because EventSource cannot send the token as a header and tells nothing of a refusal.

import { EventReader } from "./sse.js";

const FIRST_WAIT_MS = 250; // a proxy that is started again listens after some 300 ms
const LONGEST_WAIT_MS = 3000;
const REFUSED = 401;

export async function follow(store, token) {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    const outcome = await readOnce(store, token).catch((error) => {
      reportError(error); // what this page cannot read now, the next proxy may tell otherwise
      return "failed";
    });
    // Another workspace's proxy may have taken the port for a while: also a refusal is not for ever.
    store.setConnection(outcome === "refused" ? "refused" : "reconnecting");
    if (outcome === "ended") wait = FIRST_WAIT_MS;
    await pause(outcome === "refused" ? LONGEST_WAIT_MS : wait);
  }
}

/** "refused", "failed" (there was no stream), or "ended" (there was one). */
async function readOnce(store, token) {
  const headers = { Authorization: `Bearer ${token}`, Accept: "text/event-stream" };
  const response = await fetch("events", { headers, cache: "no-store" }).catch(() => null); // nobody listens there
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

/** Until the stream ends, however it does. */
async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader();
  try {
    for (;;) {
      // A proxy that was killed says no goodbye.
      const { value, done } = await reader.read().catch(() => ({ done: true }));
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
