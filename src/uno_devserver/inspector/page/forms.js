// A form for the fields of a schema (schema.js), which can also be edited as one JSON text.

import { el, fill, unique } from "./dom.js";
import { Unfit, draftOf, emptyDraft, parseJson, valueOf } from "./drafts.js";
import { mark, renderFields } from "./fields.js";

/**
 * Returns { element, tools, read, replace }: `read` gives the value, or undefined with the first problem focused;
 * `replace` replaces this form by one of another field, keeps the input, and returns it; `tools` are the buttons for
 * the whole form, to be placed beside its others.
 */
export function createForm(field, value) {
  const places = new Map();
  const fields = el("div", { class: "fields" });
  const also = el("p", { class: "hint", hidden: true });
  const text = jsonText();
  const toggle = el("button", { class: "button small", type: "button", "aria-pressed": "false" }, "Edit as JSON");
  toggle.addEventListener("click", () => (text.element.hidden ? showJson() : showFields()));
  const clear = el("button", { class: "button small", type: "button", onclick: reset }, "Reset");
  clear.hidden = !field.fields.length;
  const tools = el("div", { class: "form-tools" }, clear, toggle);
  const element = el("div", { class: "form" }, fields, also, text.element);
  let draft;
  let shownJson = null; // as made from the fields; if it is unchanged, the fields keep their input

  function start(from) {
    draft = from;
    places.clear();
    fill(fields, field.fields.length ? renderFields(field.fields, draft, [], places) : noFields());
    const extra = Object.keys(draft.extra);
    also.hidden = !extra.length;
    also.textContent = `Also sent, without a field of their own: ${extra.join(", ")}.`;
  }

  function showJson() {
    shownJson = text.control.value = JSON.stringify(valueOf(field, draft).value, null, 2);
    view(true);
    text.control.focus();
  }

  function showFields() {
    if (text.control.value !== shownJson) {
      try {
        start(draftOf(field, parseJson(text.control.value, "object")));
      } catch (error) {
        const advice = error instanceof Unfit ? " Only JSON can say that here." : "";
        mark(text, error.message + advice);
        text.control.focus();
        return;
      }
    }
    view(false);
  }

  function view(json) {
    mark(text, "");
    text.element.hidden = !json;
    fields.hidden = json;
    also.hidden = json || !Object.keys(draft.extra).length;
    toggle.setAttribute("aria-pressed", String(json));
  }

  function read() {
    return text.element.hidden ? readFields() : readJson();
  }

  function readFields() {
    const { value: found, errors } = valueOf(field, draft);
    for (const place of places.values()) if (place.control.isConnected) mark(place, "");
    if (!errors.length) return found;
    for (const { path, message } of errors.toReversed()) {
      const place = places.get(JSON.stringify(path));
      if (!place) continue;
      mark(place, message);
      place.control.focus();
    }
    return undefined;
  }

  function readJson() {
    mark(text, "");
    try {
      return parseJson(text.control.value, "object");
    } catch (error) {
      mark(text, error.message);
      text.control.focus();
      return undefined;
    }
  }

  function peek() {
    if (text.element.hidden) return valueOf(field, draft).value;
    try {
      return parseJson(text.control.value, "object");
    } catch {
      return valueOf(field, draft).value;
    }
  }

  /** A value that the fields cannot hold is kept as JSON. */
  function put(given) {
    try {
      start(draftOf(field, given));
      view(false);
    } catch (error) {
      if (!(error instanceof Unfit)) throw error;
      text.control.value = JSON.stringify(given, null, 2);
      shownJson = null;
      view(true);
    }
  }

  function reset() {
    start(emptyDraft(field));
    view(false);
  }

  function replace(other) {
    const next = createForm(other, peek());
    const focused = [...places].find(([, { control }]) => control === document.activeElement)?.[0];
    element.replaceWith(next.element);
    tools.replaceWith(next.tools);
    next.take(typed(), text.element.hidden ? null : text.control.value);
    next.focus(focused);
    return next;
  }

  /** The drafts by field, including input that cannot be sent yet. */
  function typed() {
    return new Map(field.fields.map((each) => [JSON.stringify(each), draft.fields[each.name]]));
  }

  function take(drafts, json) {
    for (const each of field.fields) {
      const key = JSON.stringify(each);
      if (drafts.has(key)) draft.fields[each.name] = drafts.get(key);
    }
    start(draft);
    if (json === null) return;
    text.control.value = json;
    shownJson = null;
    view(true);
  }

  function focus(path) {
    if (text.element.hidden) places.get(path)?.control.focus();
  }

  reset();
  if (value !== undefined) put(value);
  return { element, tools, read, replace, take, focus };
}

function jsonText() {
  const control = el("textarea", { rows: 8, id: unique("field"), spellcheck: "false", autocomplete: "off" });
  const problem = el("p", { class: "problem", id: unique("problem"), hidden: true });
  const label = el("label", { for: control.id }, "Arguments as JSON");
  return { control, problem, element: el("div", { class: "field", hidden: true }, label, control, problem) };
}

function noFields() {
  return el("p", { class: "muted" }, "It takes no arguments.");
}
