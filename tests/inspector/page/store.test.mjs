// What the page keeps of what it hears, and whom it tells.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Store } from "../../../src/uno_devserver/inspector/page/store.js";

const snapshot = (rest = {}) => ({ version: "1", directory: "/ws", now: Date.now() / 1000, health: {}, ...rest });
const call = (id, state = "running") => ({ id, state });

/** A store, and the changes that it has told of since the last time, when they are all told. */
function listening(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const store = new Store();
  let heard = [];
  store.subscribe((_, change, details) => heard.push([change, details.length]));
  const told = () => {
    t.mock.timers.tick(1000);
    const all = heard;
    heard = [];
    return all;
  };
  return { store, told };
}

test("events are told together, by their kind", (t) => {
  const { store, told } = listening(t);
  store.receive("call", call(1));
  store.receive("call", call(1, "done"));
  store.receive("health", {});
  assert.deepEqual(told(), [["call", 2], ["health", 1]]);
  assert.deepEqual([...store.state.calls.values()], [call(1, "done")]);
});

test("a snapshot replaces all that was known, and all that was still to be told", (t) => {
  const { store, told } = listening(t);
  store.receive("call", call(1));
  store.receive("log", [{ n: 1 }]);
  store.receive("snapshot", snapshot({ calls: [call(7)] }));
  assert.deepEqual(told(), [["snapshot", 1]]);
  assert.deepEqual([[...store.state.calls.keys()], store.state.log], [[7], []]);
});

test("the clock of the proxy may go otherwise than the browser's", (t) => {
  const { store } = listening(t);
  store.receive("snapshot", snapshot({ now: Date.now() / 1000 - 60 }));
  assert.ok(Math.abs(store.state.clockSkewMs - 60_000) < 1000);
});

test("the oldest calls and lines make room for the newest", (t) => {
  const { store } = listening(t);
  for (let n = 1; n <= 2500; n++) {
    store.receive("call", call(n));
    store.receive("log", [{ n, at: n }]);
  }
  const { calls, log } = store.state;
  assert.deepEqual([calls.size, [...calls.keys()].at(-1)], [300, 2500]);
  assert.deepEqual([log.length, log[0].n, log.at(-1).n], [2000, 501, 2500]);
});

test("the log is in the order of time, also where the server's lines are told late", (t) => {
  const { store } = listening(t);
  const numbers = () => store.state.log.map(({ n }) => n);
  store.receive("snapshot", snapshot({ log: [{ n: 1, at: 20 }, { n: 2, at: 10 }, { n: 3, at: 10 }] }));
  assert.deepEqual(numbers(), [2, 3, 1]);
  store.receive("log", [{ n: 4, at: 10 }, { n: 5, at: 30 }]);
  assert.deepEqual(numbers(), [2, 3, 4, 1, 5]);
});

test("lists are read again when they changed, and when the proxy is another", (t) => {
  const { store } = listening(t);
  const before = store.state.listsRevision;
  store.receive("lists", { changed: ["tools"] });
  store.receive("snapshot", snapshot());
  assert.equal(store.state.listsRevision, before + 2);
});

test("an event of a newer proxy is passed over, and a connection that stays is no news", (t) => {
  const { store, told } = listening(t);
  store.receive("constellation", {});
  store.setConnection("connecting");
  assert.deepEqual(told(), []);
  store.setConnection("connected");
  assert.deepEqual(told(), [["connection", 1]]);
});
