// From a schema to fields, from what is typed to arguments, and back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { describe, describeTexts } from "../../../src/uno_devserver/inspector/page/schema.js";
import { expand, variablesOf } from "../../../src/uno_devserver/inspector/page/templates.js";
import { Unfit, draftOf, emptyDraft, parseJson, valueOf } from "../../../src/uno_devserver/inspector/page/drafts.js";

const only = (schema, required = false) =>
  describe({ type: "object", properties: { it: schema }, required: required ? ["it"] : [] }).fields[0];

/** The arguments, or the errors by path, when `typed` is put into the fields of an object schema. */
function sent(schema, typed) {
  const field = describe(schema);
  const draft = emptyDraft(field);
  Object.assign(draft.fields, typed);
  const { value, errors } = valueOf(field, draft);
  return errors.length ? Object.fromEntries(errors.map(({ path, message }) => [path.join("."), message])) : value;
}

const object = (properties, required = []) => ({ type: "object", properties, required });

test("a field has its title, its description and whether it is required", () => {
  const field = only({ type: "string", title: "Who", description: "the name" }, true);
  assert.deepEqual([field.name, field.label, field.description, field.required], ["it", "Who", "the name", true]);
});

test("the title of a type that is referred to does not name the property", () => {
  const $defs = { Area: { ...object({ w: {} }), title: "Area" } };
  const schema = { ...object({ size: { $ref: "#/$defs/Area" } }), $defs };
  assert.equal(describe(schema).fields[0].label, "size");
});

test("each type has its kind of field", () => {
  const kinds = [
    [{ type: "string" }, "string"],
    [{ type: "integer" }, "number"],
    [{ type: "number" }, "number"],
    [{ type: "boolean" }, "boolean"],
    [{ enum: ["a", "b"] }, "choice"],
    [{ const: 5 }, "choice"],
    [{ type: "null" }, "choice"],
    [{ type: "array", items: { type: "string" } }, "array"],
    [{ type: "array", items: object({ a: {} }) }, "array"],
    [{ type: "array", items: { type: ["string", "integer"] } }, "json"],
    [{ type: "array", items: { type: "array", items: {} } }, "json"],
    [object({ a: {} }), "object"],
    [{ anyOf: [{ type: "string" }, { type: "integer" }] }, "union"],
    [{ type: ["string", "integer"] }, "union"],
    [{ type: "object" }, "json"],
    [{ type: "object", additionalProperties: { type: "string" } }, "json"],
    [{ type: "array" }, "json"],
    [{ type: "array", prefixItems: [{ type: "string" }] }, "json"],
    [{}, "json"],
    [true, "json"],
    [{ $ref: "https://example.com/other.json" }, "json"],
    [{ $ref: "#/$defs/missing" }, "json"],
    [{ properties: { a: {} } }, "object"],
    [{ maxLength: 5 }, "string"],
  ];
  for (const [schema, kind] of kinds) assert.equal(only(schema).kind, kind, JSON.stringify(schema));
});

test("a long text gets several lines, and one with a format does not", () => {
  assert.equal(only({ type: "string", maxLength: 1000 }).multiline, true);
  assert.equal(only({ type: "string", contentMediaType: "text/markdown" }).multiline, true);
  assert.equal(only({ type: "string" }).multiline, false);
  assert.equal(only({ type: "string", format: "uri", maxLength: 1000 }).multiline, false);
  const named = describe(object({ text: { type: "string" }, source_code: { type: "string" }, code: { maxLength: 3 } }));
  assert.deepEqual(named.fields.map((field) => field.multiline), [true, true, false]);
});

test("what is optional and may be null is a plain field", () => {
  const field = only({ anyOf: [{ type: "string" }, { type: "null" }], default: null, description: "said here" });
  assert.deepEqual([field.kind, field.description, field.default], ["string", "said here", undefined]);
});

test("what is required and may be null is a choice of the two", () => {
  const field = only({ anyOf: [{ type: "string" }, { type: "null" }] }, true);
  assert.deepEqual(field.branches.map((branch) => branch.label), ["Text", "null"]);
});

test("a boolean that may be null can be left open", () => {
  const field = only({ type: ["boolean", "null"], default: null });
  assert.deepEqual([field.kind, field.options.map((each) => each.label)], ["choice", ["true", "false"]]);
});

test("choices with titles show them and send their values", () => {
  const field = only({ oneOf: [{ const: 1, title: "One" }, { const: 2, title: "Two" }] });
  assert.deepEqual(field.options, [{ label: "One", value: 1 }, { label: "Two", value: 2 }]);
  assert.equal(only({ enum: ["a"], enumNames: ["Letter A"] }).options[0].label, "Letter A");
});

test("alternatives of the same type are told apart", () => {
  const field = only({ oneOf: [{ type: "string", minLength: 9 }, { type: "string" }, { type: "integer" }] });
  assert.deepEqual(field.branches.map((branch) => branch.label), ["Text 1", "Text 2", "Whole number"]);
});

test("a schema that contains itself ends in JSON", () => {
  const schema = { $ref: "#/$defs/Node", $defs: { Node: object({ name: {}, next: { $ref: "#/$defs/Node" } }) } };
  const field = describe(schema);
  assert.deepEqual(field.fields.map((each) => [each.name, each.kind]), [["name", "json"], ["next", "json"]]);
});

test("a reference in a circle ends in JSON", () => {
  const $defs = { A: { $ref: "#/$defs/B" }, B: { $ref: "#/$defs/A" } };
  assert.equal(describe({ ...object({ a: { $ref: "#/$defs/A" } }), $defs }).fields[0].kind, "json");
});

test("objects in objects are fieldsets three deep, and JSON below", () => {
  const deep = (levels) => (levels ? object({ in: deep(levels - 1) }) : { type: "string" });
  let field = describe(deep(6));
  const kinds = [];
  while (field?.fields) [field] = [field.fields[0], kinds.push(field.fields[0].kind)];
  assert.deepEqual(kinds, ["object", "object", "object", "json"]);
});

test("the parts of allOf are one object", () => {
  const field = describe({ allOf: [object({ a: {} }, ["a"]), object({ b: {} })], required: ["b"] });
  assert.deepEqual(field.fields.map((each) => [each.name, each.required]), [["a", true], ["b", true]]);
});

test("whatever is called a schema gives a form", () => {
  const odd = [undefined, null, true, [], "x", { properties: 5 }, { type: 7 }, { required: "x", properties: {} }];
  for (const schema of odd) {
    assert.equal(describe(schema).kind, "object");
  }
  const inside = [null, [], 5, { enum: [] }, { anyOf: [] }, { type: [] }, { items: 5 }, { allOf: 5 }, { $ref: "#/%" }];
  for (const schema of inside) {
    const field = only(schema);
    assert.doesNotThrow(() => valueOf(field, emptyDraft(field)), JSON.stringify(schema));
  }
});

test("what is optional and empty is not sent", () => {
  const schema = object({
    s: { type: "string" },
    n: { type: "integer" },
    b: { type: "boolean" },
    c: { enum: [1] },
    l: { type: "array", items: { type: "string" } },
    o: object({ x: { type: "string" } }, ["x"]),
    u: { type: ["string", "integer"] },
    j: {},
  });
  assert.deepEqual(sent(schema, {}), {});
});

const DEFAULTS = object({
  s: { type: "string", default: "x" },
  n: { type: "integer", default: 0 },
  b: { type: "boolean", default: false },
  on: { type: "boolean", default: true },
  c: { enum: ["a", "b"], default: "b" },
  l: { type: "array", items: { type: "integer" }, default: [1, 2] },
  j: { type: "object", default: { k: 1 } },
  u: { anyOf: [{ type: "integer" }, { type: "string" }], default: "auto" },
});

test("what is not touched is left to the server's defaults", () => {
  assert.deepEqual(sent(DEFAULTS, {}), {});
  assert.equal(emptyDraft(describe(DEFAULTS)).fields.on, true);
  assert.deepEqual(sent(DEFAULTS, { on: false, b: true, n: "0" }), { n: 0, b: true, on: false });
});

test("the answer to a question is filled with its defaults, and they are sent", () => {
  const field = describe(DEFAULTS, { prefilled: true });
  const defaults = { s: "x", n: 0, b: false, on: true, c: "b", l: [1, 2], j: { k: 1 }, u: "auto" };
  assert.deepEqual(valueOf(field, emptyDraft(field)).value, defaults);
});

test("a required member begins with its default", () => {
  assert.deepEqual(sent(object({ n: { type: "integer", default: 3 } }, ["n"]), {}), { n: 3 });
});

test("a default that its own schema forbids is ignored", () => {
  assert.deepEqual(sent(object({ b: { type: "boolean", default: "yes" } }, ["b"]), {}), { b: false });
});

test("what is required and empty is an error at its path", () => {
  const properties = { s: { type: "string" }, n: { type: "number" }, c: { enum: [1, 2] }, j: {} };
  assert.deepEqual(Object.keys(sent(object(properties, ["s", "n", "c", "j"]), {})), ["s", "n", "c", "j"]);
});

test("a required choice of one is already made", () => {
  assert.deepEqual(sent(object({ kind: { const: "circle" } }, ["kind"]), {}), { kind: "circle" });
});

test("numbers are checked as the schema says", () => {
  const n = (limits, text) => sent(object({ n: { type: "number", ...limits } }), { n: text }).n;
  assert.equal(n({}, " 1.5e3 "), 1500);
  assert.equal(n({ multipleOf: 0.1 }, "0.3"), 0.3);
  assert.match(n({}, "many"), /not a number/);
  assert.match(n({ type: "integer" }, "1.5"), /whole number/);
  assert.match(n({ type: "integer" }, "9007199254740993"), /too large/);
  assert.match(n({ minimum: 2 }, "1"), /at least 2/);
  assert.match(n({ maximum: 2 }, "3"), /at most 2/);
  assert.match(n({ exclusiveMinimum: 0 }, "0"), /more than 0/);
  assert.match(n({ exclusiveMaximum: 1 }, "1"), /less than 1/);
  assert.match(n({ multipleOf: 5 }, "7"), /multiple of 5/);
});

test("texts are checked as the schema says", () => {
  const s = (limits, text) => sent(object({ s: { type: "string", ...limits } }), { s: text }).s;
  assert.equal(s({ maxLength: 1 }, "😀"), "😀");
  assert.equal(s({}, "  "), "  ");
  assert.match(s({ minLength: 3 }, "ab"), /at least 3 characters/);
  assert.match(s({ maxLength: 1 }, "ab"), /at most 1 character\./);
  assert.match(s({ pattern: "^a+$" }, "b"), /match \^a\+\$/);
  assert.equal(s({ pattern: "(?P<x>a)" }, "b"), "b");
  assert.match(s({ format: "email" }, "ada"), /e-mail/);
  assert.match(s({ format: "uri" }, "example"), /address/);
  assert.equal(s({ format: "uri" }, "file:///x"), "file:///x");
});

test("lists know how many items they need, and where one is wrong", () => {
  const schema = object({ l: { type: "array", items: { type: "integer" }, minItems: 2, maxItems: 3 } }, ["l"]);
  assert.deepEqual(emptyDraft(describe(schema)).fields.l, ["", ""]);
  assert.deepEqual(sent(schema, { l: ["1", "2"] }), { l: [1, 2] });
  assert.match(sent(schema, { l: ["1"] }).l, /1 more item: at least 2/);
  assert.match(sent(schema, { l: ["1", "2", "3", "4"] }).l, /at most 3/);
  assert.deepEqual(Object.keys(sent(schema, { l: ["1", "x"] })), ["l.1"]);
});

test("an optional object is sent when it was asked for, and then needs its members", () => {
  const schema = object({ o: object({ x: { type: "string" }, y: { type: "integer", default: 1 } }, ["x"]) });
  assert.deepEqual(sent(schema, {}), {});
  assert.deepEqual(Object.keys(sent(schema, { o: { sent: true, fields: { x: "", y: "" }, extra: {} } })), ["o.x"]);
  assert.deepEqual(sent(schema, { o: { sent: true, fields: { x: "a", y: "" }, extra: {} } }), { o: { x: "a" } });
});

test("JSON is checked, also for what it must be", () => {
  const j = (schema, text) => sent(object({ j: schema }), { j: text }).j;
  assert.deepEqual(j({}, "[1]"), [1]);
  assert.match(j({}, "{"), /not JSON/);
  assert.match(j({ type: "object" }, "[1]"), /must be a JSON object/);
  assert.match(j({ type: "array" }, "{}"), /must be a JSON list/);
  assert.throws(() => parseJson("5", "object"), /JSON object/);
});

test("a member may be called __proto__", () => {
  const schema = object(JSON.parse('{"__proto__": {"type": "string"}, "constructor": {"type": "string"}}'));
  const field = describe(schema);
  const draft = emptyDraft(field);
  for (const each of field.fields) draft.fields[each.name] = "x";
  assert.equal(JSON.stringify(valueOf(field, draft).value), '{"__proto__":"x","constructor":"x"}');
});

test("a variable that the path needs is required, although a query may have it, too", () => {
  assert.deepEqual(variablesOf("x://{id}{?id}"), [{ name: "id", required: true }]);
});

test("a member that is called as what objects have by themselves is one of the address", () => {
  assert.equal(expand("x://{?constructor,toString}", { toString: "s" }), "x://?toString=s");
});

test("types that contain each other make a form of bounded size", { timeout: 5000 }, () => {
  const names = Array.from({ length: 15 }, (_, index) => `Node${index}`);
  const any = { anyOf: names.map((name) => ({ $ref: `#/$defs/${name}` })) };
  const members = Object.fromEntries(names.map((name) => [name, any]));
  const $defs = Object.fromEntries(names.map((name) => [name, object({ ...members, text: { type: "string" } })]));
  const field = describe({ ...object({ root: any }), $defs });
  assert.ok(emptyDraft(field));
  assert.ok(JSON.stringify(field).length < 2_000_000);
});

test("a list of too many values to choose from is typed", () => {
  const values = Array.from({ length: 100_000 }, (_, index) => `value ${index}`);
  assert.equal(only({ type: "string", enum: values }).kind, "string");
  assert.equal(only({ oneOf: values.map((each) => ({ const: each })) }).kind, "json");
  assert.equal(only({ enum: values.slice(0, 1000) }).options.length, 1000);
});

test("what a server calls a type is none that objects have by themselves", () => {
  const field = only({ anyOf: [{ type: "constructor" }, { type: "toString" }] });
  assert.deepEqual(field.branches.map((branch) => branch.label), ["JSON 1", "JSON 2"]);
});

test("numbers that JavaScript cannot hold stay as they were written in JSON", () => {
  const long = '{"id":9007199254740993,"list":[-12345678901234567890,1.5,1e999]}';
  assert.equal(JSON.stringify(parseJson(long, "object")), long);
  assert.throws(() => parseJson("9007199254740993", "object"), /JSON object/);
  assert.throws(() => draftOf(describe(object({ id: { type: "integer" } })), parseJson(long)), Unfit);
});

test("arguments go into the fields and come out the same", () => {
  const schema = object(
    {
      s: { type: "string" },
      text: { type: "string" },
      n: { type: "number" },
      b: { type: "boolean" },
      c: { enum: ["a", { k: 1 }] },
      l: { type: "array", items: { type: "integer" } },
      o: object({ x: { type: "integer" } }, ["x"]),
      u: { anyOf: [{ type: "integer", minimum: 5 }, { type: "integer" }, { type: "null" }] },
      j: {},
    },
    ["u"],
  );
  const all = { s: "x", text: "a\nb", n: -1.5, b: true, c: { k: 1 }, l: [1, 2], o: { x: 1 }, u: 3, j: [null] };
  for (const value of [all, { u: null }, { u: 7, more: { kept: true } }]) {
    const field = describe(schema);
    assert.deepEqual(valueOf(field, draftOf(field, value)), { value, errors: [] });
  }
});

test("arguments that the fields cannot hold are refused whole, with the place", () => {
  const inner = object({ x: { type: "string" } });
  const l = { type: "array", items: { type: "string" } };
  const simple = { n: { type: "integer" }, s: { type: "string" }, b: { type: "boolean" } };
  const field = describe(object({ ...simple, l, o: inner }));
  assert.throws(() => draftOf(field, { n: "5" }), /^Error: n is not a number/);
  assert.throws(() => draftOf(field, { l: ["a", 5] }), /^Error: l\[1\] is not a text/);
  assert.throws(() => draftOf(field, { o: { x: 5 } }), /^Error: o\.x is not a text/);
  for (const left of [{ s: "" }, { b: false }, { l: [] }]) assert.throws(() => draftOf(field, left), Unfit);
  assert.throws(() => draftOf(field, []), Unfit);
});

test("the arguments of a prompt are texts", () => {
  const field = describeTexts([{ name: "file", description: "a path", required: true }, { name: "depth" }]);
  const draft = emptyDraft(field);
  assert.deepEqual(valueOf(field, draft).errors.map((each) => each.path), [["file"]]);
  draft.fields.file = "a.py";
  assert.deepEqual(valueOf(field, draft).value, { file: "a.py" });
});

test("the variables of a template are found, and put into the address", () => {
  const template = "files://{host}/{+path}{?line,column}";
  const required = variablesOf(template).map(({ name, required }) => `${name}${required ? "!" : ""}`);
  assert.deepEqual(required, ["host!", "path!", "line", "column"]);
  assert.equal(expand(template, { host: "a/b", path: "x/ä y", line: "5" }), "files://a%2Fb/x/%C3%A4%20y?line=5");
  const values = { a: "1", b: "2", c: "3", d: "4", e: "5", f: "6" };
  assert.equal(expand("x://{a,b}{/c*}{;d}{&e:3}{#f}", values), "x://1,2/3;d=4&e=5#6");
  assert.deepEqual(variablesOf("plain://"), []);
});
