// Numbers, moments and paths as people read them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { bytes, duration, ms, shortened, ticking } from "../../../src/uno_devserver/inspector/page/format.js";

test("times have three figures at most, and a unit that fits", () => {
  const times = [0.42, 9.96, 123.4, 999.4, 1234, 12_345, 65_400, null, NaN];
  const said = ["0.4 ms", "10.0 ms", "123 ms", "999 ms", "1.23 s", "12.3 s", "1 min 05 s", "–", "–"];
  assert.deepEqual(times.map(ms), said);
});

test("what is going on is told in tenths of a second, and never runs backwards", () => {
  assert.deepEqual([-5, 1234, 60_000].map(ticking), ["0.0 s", "1.2 s", "1 min 00 s"]);
});

test("an age has the unit that fits", () => {
  assert.deepEqual([59, 61, 3660, 90_000].map(duration), ["59 s", "1 min", "1 h 1 min", "1 d"]);
});

test("sizes are told in thousands", () => {
  assert.deepEqual([999, 1500, 2_500_000].map(bytes), ["999 B", "1.5 kB", "2.5 MB"]);
});

test("a path below the home of the user begins with ~, and no other does", () => {
  const home = "/home/ada";
  assert.equal(shortened("/home/ada/shop/app.sln", home), "~/shop/app.sln");
  assert.equal(shortened("/home/ada", `${home}/`), "~");
  assert.equal(shortened("/home/adam/shop", home), "/home/adam/shop");
  assert.equal(shortened("/srv/home/ada/shop", home), "/srv/home/ada/shop");
  assert.equal(shortened(String.raw`C:\Users\Ada\shop`, String.raw`C:\Users\Ada`), String.raw`~\shop`);
});

test("without a home, or with the root as one, no path is shortened", () => {
  assert.deepEqual(["", "/"].map((home) => shortened("/srv/shop", home)), ["/srv/shop", "/srv/shop"]);
});
