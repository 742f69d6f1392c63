// Drafts: the input in the fields of schema.js, and the values that are sent for it. `valueOf` leaves out optional
// empty fields and reports invalid ones as errors at their paths; `draftOf` holds the complete value or throws.
//
// Draft by kind: string, number and json a text; boolean a boolean; choice an index (-1: none); array a list of drafts;
// object { sent, fields, extra } (extra: members that have no field); union { branch (-1: none), drafts }.

import { parseExactly } from "./exact-json.js";

const MAX_PREFILLED = 10; // items of a list that are shown at first

export class Unfit extends Error {}

/** The initial content of the fields. A checkbox has no third state, so it always shows its default. */
export function emptyDraft(field) {
  if (field.default !== undefined && field.prefilled) {
    try {
      return draftOf(field, field.default);
    } catch (error) {
      if (!(error instanceof Unfit)) throw error; // a default that its own schema does not allow is ignored
    }
  }
  switch (field.kind) {
    case "boolean":
      return unsent(field);
    case "choice":
      return field.required && field.options.length === 1 ? 0 : -1;
    case "array":
      return Array.from({ length: field.required ? Math.min(field.minItems ?? 0, MAX_PREFILLED) : 0 }, () =>
        emptyDraft(field.item),
      );
    case "object":
      return { sent: field.required, fields: mapped(field.fields, emptyDraft), extra: {} };
    case "union":
      return { branch: field.required ? 0 : -1, drafts: field.branches.map((each) => emptyDraft(each.field)) };
    default:
      return "";
  }
}

/** { value, errors: [{ path, message }] }; with errors, the value has the valid parts. */
export function valueOf(field, draft) {
  const errors = [];
  return { value: read(field, draft, [], errors), errors };
}

function read(field, draft, path, errors) {
  const fail = (message) => {
    errors.push({ path, message });
    return undefined;
  };
  switch (field.kind) {
    case "boolean":
      return field.prefilled || draft !== unsent(field) ? draft : undefined;
    case "choice":
      if (draft >= 0) return field.options[draft].value;
      return field.required ? fail("Choose one.") : undefined;
    case "array":
      return readArray(field, draft, path, errors, fail);
    case "object":
      return readObject(field, draft, path, errors);
    case "union":
      if (draft.branch >= 0) return read(field.branches[draft.branch].field, draft.drafts[draft.branch], path, errors);
      return field.required ? fail("Choose one.") : undefined;
    default:
      return readText(field, draft, fail);
  }
}

/** The server's default for an optional checkbox that was not sent. */
function unsent(field) {
  return field.default === true;
}

function readArray(field, draft, path, errors, fail) {
  if (!draft.length && !field.required) return undefined;
  const { minItems, maxItems } = field;
  if (draft.length < minItems) fail(`Add ${plural(minItems - draft.length, "more item")}: at least ${minItems}.`);
  if (draft.length > maxItems) fail(`Remove ${plural(draft.length - maxItems, "item")}: at most ${maxItems}.`);
  return draft.map((each, index) => read(field.item, each, [...path, index], errors)).filter((it) => it !== undefined);
}

function readObject(field, draft, path, errors) {
  if (!draft.sent) return undefined;
  const value = {};
  for (const inner of field.fields) {
    const member = read(inner, draft.fields[inner.name], [...path, inner.name], errors);
    if (member !== undefined) put(value, inner.name, member);
  }
  for (const [name, member] of Object.entries(draft.extra)) put(value, name, member);
  return value;
}

function readText(field, draft, fail) {
  if (draft.trim() === "" && field.kind !== "string") return field.required ? fail("Required.") : undefined;
  if (field.kind === "number") return readNumber(field, draft, fail);
  if (field.kind === "json") return readJson(field, draft, fail);
  if (draft !== "") return readString(field, draft, fail);
  return field.required ? fail("Required. (An empty text can be sent with Edit as JSON.)") : undefined;
}

function readNumber(field, draft, fail) {
  const value = Number(draft);
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = field;
  if (!Number.isFinite(value)) return fail("This is not a number.");
  if (field.integer && !Number.isInteger(value)) return fail("This must be a whole number.");
  if (field.integer && !Number.isSafeInteger(value)) return fail("This number is too large to be sent exactly.");
  if (value < minimum) return fail(`This must be at least ${minimum}.`);
  if (value > maximum) return fail(`This must be at most ${maximum}.`);
  if (value <= exclusiveMinimum) return fail(`This must be more than ${exclusiveMinimum}.`);
  if (value >= exclusiveMaximum) return fail(`This must be less than ${exclusiveMaximum}.`);
  if (multipleOf > 0 && !isMultiple(value, multipleOf)) return fail(`This must be a multiple of ${multipleOf}.`);
  return value;
}

function readString(field, draft, fail) {
  const length = [...draft].length; // schemas count characters, not UTF-16 units
  if (length < field.minLength) return fail(`This needs at least ${plural(field.minLength, "character")}.`);
  if (length > field.maxLength) return fail(`This may have at most ${plural(field.maxLength, "character")}.`);
  if (field.pattern !== undefined && mismatches(field.pattern, draft)) return fail(`This must match ${field.pattern}`);
  if (field.format === "email" && !/^[^\s@]+@[^\s@]+$/.test(draft)) return fail("This is not an e-mail address.");
  if (field.format === "uri" && !URL.canParse(draft)) return fail("This is not a whole address, such as https://…");
  return draft;
}

function readJson(field, draft, fail) {
  try {
    return parseJson(draft, field.whole);
  } catch (error) {
    return fail(error.message);
  }
}

/** Parses JSON that a user typed; throws an Error that says what is wrong with it. */
export function parseJson(text, whole) {
  let value;
  try {
    value = parseExactly(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}.`);
  }
  if (whole === "object" && !isObject(value)) throw new Error('This must be a JSON object, such as {"name": "value"}.');
  if (whole === "array" && !Array.isArray(value)) throw new Error('This must be a JSON list, such as ["a", "b"].');
  return value;
}

/** The draft for this value; throws Unfit if the fields cannot hold it. */
export function draftOf(field, value, path = field.name) {
  const unfit = (what) => new Unfit(`${path || "The whole"} is not ${what}.`);
  switch (field.kind) {
    case "string":
      if (typeof value !== "string" || value === "") throw unfit("a text with characters in it");
      if (!field.multiline && /[\r\n]/.test(value)) throw unfit("a text of one line");
      return value;
    case "number":
      if (typeof value !== "number") throw unfit("a number");
      return String(value);
    case "boolean":
      if (typeof value !== "boolean") throw unfit("true or false");
      if (!field.prefilled && value === unsent(field)) throw unfit("something that a box would send");
      return value;
    case "choice":
      return chosen(field, value, unfit);
    case "array":
      if (!Array.isArray(value)) throw unfit("a list");
      if (!value.length && !field.required) throw unfit("a list with items in it");
      return value.map((each, index) => draftOf(field.item, each, `${path}[${index}]`));
    case "object":
      return objectDraft(field, value, path, unfit);
    case "union":
      return unionDraft(field, value, path, unfit);
    default:
      return JSON.stringify(value, null, 2);
  }
}

function chosen(field, value, unfit) {
  const index = field.options.findIndex((each) => same(each.value, value));
  if (index < 0) throw unfit("one of the choices");
  return index;
}

function objectDraft(field, value, path, unfit) {
  if (!isObject(value)) throw unfit("an object");
  const known = new Set(field.fields.map((each) => each.name));
  const fields = mapped(field.fields, (each) => {
    const inner = path ? `${path}.${each.name}` : each.name;
    return Object.hasOwn(value, each.name) ? draftOf(each, value[each.name], inner) : emptyDraft(each);
  });
  return { sent: true, fields, extra: Object.fromEntries(Object.entries(value).filter(([name]) => !known.has(name))) };
}

function unionDraft(field, value, path, unfit) {
  const drafts = field.branches.map((each) => emptyDraft(each.field));
  for (const [branch, { field: inner }] of field.branches.entries()) {
    try {
      const draft = draftOf(inner, value, path);
      if (valueOf(inner, draft).errors.length) continue;
      drafts[branch] = draft;
      return { branch, drafts };
    } catch (error) {
      if (!(error instanceof Unfit)) throw error;
    }
  }
  throw unfit("one of the alternatives");
}

function mapped(fields, make) {
  const made = Object.create(null); // a field may have the name __proto__
  for (const each of fields) made[each.name] = make(each);
  return made;
}

function put(target, name, value) {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

function same(first, second) {
  return JSON.stringify(first) === JSON.stringify(second);
}

function isMultiple(value, step) {
  const times = value / step;
  return Math.abs(times - Math.round(times)) < 1e-9 * Math.max(1, Math.abs(times)); // 0.3 / 0.1 is not 3
}

function mismatches(pattern, text) {
  try {
    return !new RegExp(pattern, "u").test(text);
  } catch {
    return false; // a pattern of another dialect: the server checks it
  }
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON?.(value);
}
