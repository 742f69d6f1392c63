// The fields of a form for a JSON schema, as a tree, without a document. Every schema has a field; a part without a
// control of its own (recursion, depth, tuples, free-form objects) is a field of kind "json".
//
// Field: { kind, name, label, description, required, default, prefilled } and, by kind,
//   string   multiline, format, minLength, maxLength, pattern
//   number   integer, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
//   boolean
//   choice   options [{ label, value }]
//   array    item (a field: a simple one, or an object), minItems, maxItems
//   object   fields
//   union    branches [{ label, field }]
//   json     whole: "object" | "array" | undefined, the required type of the value

const MAX_DEPTH = 3; // of fieldsets inside fieldsets; deeper ones are easier to read as JSON
const MAX_BRANCHES = 20; // users do not choose from more alternatives
const MAX_OPTIONS = 1000; // a longer list becomes a text field, because browsers take seconds to show it
const MAX_FIELDS = 2000; // of a form; types that contain each other could make millions
const MULTILINE_LENGTH = 200; // a text that may be longer gets several lines
const NULL = { type: "null" };
const WORDS = {
  __proto__: null,
  string: "Text",
  integer: "Whole number",
  number: "Number",
  boolean: "Yes or no",
  array: "List",
  object: "Object",
  null: "null",
};
const MULTILINE_NAMES = /(^|_)(text|body|content|contents|code|source|script|prompt|message|markdown|html|sql)$/i;

const LISTED = ["string", "number", "boolean", "choice", "object"]; // lists of others are easier to write as JSON

/**
 * The field for the arguments of a tool: an object, whatever the schema says. Empty fields are not sent, and the
 * server uses its defaults; with `prefilled`, defaults are filled in and sent.
 */
export function describe(schema, { prefilled = false } = {}) {
  const at = { root: schema, refs: [], depth: 0, prefilled, room: { left: MAX_FIELDS } };
  const { schema: found, refs } = resolved(schema, at);
  return objectField(found ?? {}, { name: "", label: "", required: true }, { ...at, refs });
}

/** The same for named texts: the arguments of a prompt, the variables of a template. */
export function describeTexts(entries) {
  const fields = entries.map(({ name, title, description, required }) => {
    const about = { name, label: title || name, description, required: Boolean(required) };
    return { ...about, kind: "string", multiline: false };
  });
  return { kind: "object", name: "", label: "", required: true, fields };
}

function field(raw, name, required, outer) {
  const { schema, refs } = resolved(raw, outer);
  // The title of a referenced type does not describe this property.
  const label = text(raw?.title) || name;
  const description = text(raw?.description ?? schema?.description);
  const about = { name, label, description, required, prefilled: required || outer.prefilled };
  if (schema === null || outer.room.left-- <= 0) return { ...about, kind: "json" };
  if (schema.default !== undefined) about.default = schema.default;
  const at = { ...outer, refs };
  const options = optionsOf(schema, at);
  if (options) return { ...about, kind: "choice", options };
  const alternatives = alternativesOf(schema);
  if (alternatives) return unionField(alternatives, about, at);
  return fieldOfType(schema, about, at);
}

function fieldOfType(schema, about, at) {
  switch (typeOf(schema)) {
    case "string":
      return stringField(schema, about);
    case "integer":
    case "number":
      return numberField(schema, about);
    case "boolean":
      return { ...about, kind: "boolean" };
    case "null":
      return { ...about, kind: "choice", options: [{ label: "null", value: null }] };
    case "array":
      return arrayField(schema, about, at);
    case "object":
      return at.depth < MAX_DEPTH && Object.keys(schema.properties ?? {}).length
        ? objectField(schema, about, { ...at, depth: at.depth + 1 })
        : { ...about, kind: "json", whole: "object" };
    default:
      return { ...about, kind: "json" };
  }
}

function stringField(schema, about) {
  const { format, minLength, maxLength, pattern } = schema;
  const multiline =
    !format &&
    (schema.contentMediaType !== undefined || maxLength > MULTILINE_LENGTH || MULTILINE_NAMES.test(about.name)) &&
    !(maxLength <= MULTILINE_LENGTH);
  return { ...about, kind: "string", multiline, format, minLength, maxLength, pattern };
}

function numberField(schema, about) {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const limits = { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf };
  return { ...about, kind: "number", integer: typeOf(schema) === "integer", ...limits };
}

function arrayField(schema, about, at) {
  const item = isObject(schema.items) && !schema.prefixItems ? field(schema.items, about.name, true, at) : null;
  if (!LISTED.includes(item?.kind)) return { ...about, kind: "json", whole: "array" };
  return { ...about, kind: "array", item, minItems: schema.minItems, maxItems: schema.maxItems };
}

function objectField(schema, about, at) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : [];
  const fields = properties.map(([name, inner]) => field(inner, name, required.has(name), at));
  return { ...about, kind: "object", fields };
}

function unionField(alternatives, about, at) {
  const real = alternatives.filter((each) => resolved(each, at).schema?.type !== "null");
  const nullable = real.length < alternatives.length;
  // An optional field with the default null needs no choice: empty means null.
  if (nullable && real.length === 1 && !about.required && (about.default ?? null) === null) {
    const { default: _, ...rest } = about;
    const inner = field(real[0], about.name, false, at);
    // A checkbox cannot be left empty, a list of two options can.
    const three = inner.kind === "boolean" && { kind: "choice", options: [true, false].map(option) };
    return { ...inner, ...three, ...rest, description: rest.description ?? inner.description };
  }
  if (!real.length || alternatives.length > MAX_BRANCHES) return { ...about, kind: "json" };
  const branches = (nullable ? [...real, NULL] : real).map((each) => {
    const inner = { ...field(each, about.name, true, at), label: about.label };
    return { label: branchLabel(each, at), field: inner };
  });
  return { ...about, kind: "union", branches: distinct(branches) };
}

function branchLabel(raw, at) {
  const { schema } = resolved(raw, at);
  if (schema === null) return "JSON";
  return text(raw.title) || text(schema.title) || WORDS[typeOf(schema)] || (schema.enum ? "One of a list" : "JSON");
}

function distinct(branches) {
  const labels = branches.map((branch) => branch.label);
  const count = (list, label) => list.filter((each) => each === label).length;
  return branches.map((branch, index) => {
    const { label } = branch;
    if (count(labels, label) === 1) return branch;
    return { ...branch, label: `${label} ${count(labels.slice(0, index + 1), label)}` };
  });
}

/** The values to choose from; undefined if the schema is not a choice. */
function optionsOf(schema, at) {
  if ("const" in schema) return [option(schema.const)];
  if (Array.isArray(schema.enum) && schema.enum.length && schema.enum.length <= MAX_OPTIONS) {
    return schema.enum.map((value, index) => option(value, schema.enumNames?.[index]));
  }
  const several = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(several) || !several.length || several.length > MAX_OPTIONS) return undefined;
  const inner = several.map((each) => resolved(each, at).schema);
  const fixed = inner.every((each) => each && "const" in each);
  return fixed ? inner.map((each) => option(each.const, each.title)) : undefined;
}

function option(value, label) {
  return { label: text(label) || (typeof value === "string" && value !== "" ? value : JSON.stringify(value)), value };
}

function alternativesOf(schema) {
  const several = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(several) && several.length) {
    const { anyOf, oneOf, default: _, title, description, ...shared } = schema;
    return several.map((each) => (isObject(each) && Object.keys(shared).length ? { ...shared, ...each } : each));
  }
  if (!Array.isArray(schema.type)) return undefined;
  const { default: _, title, description, ...shared } = schema;
  return schema.type.map((type) => ({ ...shared, type }));
}

function typeOf(schema) {
  if (typeof schema.type === "string") return schema.type;
  if (isObject(schema.properties)) return "object";
  if (schema.items !== undefined) return "array";
  if (["format", "pattern", "minLength", "maxLength"].some((key) => key in schema)) return "string";
  return undefined;
}

/** The schema with its references resolved; `schema: null` if it refers to itself or to something unknown. */
function resolved(raw, at) {
  if (!isObject(raw)) return { schema: {}, refs: at.refs };
  let { $ref: ref, allOf, ...schema } = raw;
  let refs = at.refs;
  if (typeof ref === "string") {
    const target = pointed(at.root, ref);
    if (refs.includes(ref) || target === undefined) return { schema: null, refs };
    refs = [...refs, ref];
    const inner = resolved(target, { ...at, refs });
    if (inner.schema === null) return inner;
    schema = { ...inner.schema, ...schema };
    refs = inner.refs;
  }
  let parts = {};
  for (const part of Array.isArray(allOf) ? allOf : []) {
    const inner = resolved(part, { ...at, refs });
    if (inner.schema === null) return inner;
    parts = merged(parts, inner.schema);
    refs = inner.refs;
  }
  return { schema: merged(parts, schema), refs };
}

function merged(first, second) {
  const both = { ...first, ...second };
  if (first.properties && second.properties) both.properties = { ...first.properties, ...second.properties };
  if (first.required && second.required) both.required = [...first.required, ...second.required];
  return both;
}

function pointed(root, ref) {
  if (!/^#(\/|$)/.test(ref)) return undefined; // in another document, which is not fetched
  let found = root;
  for (const part of ref.split("/").slice(1)) {
    const key = unescaped(part);
    if (!isObject(found) || !Object.hasOwn(found, key)) return undefined;
    found = found[key];
  }
  return found;
}

function unescaped(part) {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return part;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value) {
  return typeof value === "string" ? value : undefined;
}
