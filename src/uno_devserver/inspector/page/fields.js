// The controls of a field and of the fields inside it. Each writes its input into the draft (drafts.js) at once, and
// has a place, found by its path, for an error message.

import { el, fill, unique } from "./dom.js";
import { emptyDraft } from "./drafts.js";

const INPUTS = {
  __proto__: null,
  email: { type: "email" },
  uri: { type: "url", placeholder: "https://…" },
  date: { type: "date" },
  time: { type: "time", step: "1" },
  "date-time": { type: "text", placeholder: "2026-01-31T14:00:00Z" },
};
const NOT_A_NUMBER = "NaN"; // stands for input of a number field that is not a number, which browsers do not reveal

/** `places` maps the path of a field (as JSON) to { control, problem }; `set` takes the field's new draft. */
export function renderField(field, draft, set, path, places) {
  switch (field.kind) {
    case "boolean":
      return checkbox(field, draft, set, path, places);
    case "choice":
      return labelled(field, select(field, draft, set), path, places);
    case "array":
      return list(field, draft, path, places);
    case "object":
      return group(field, draft, path, places);
    case "union":
      return alternatives(field, draft, path, places);
    default:
      return labelled(field, textControl(field, draft, set), path, places);
  }
}

export function renderFields(fields, draft, path, places) {
  return fields.map((each) => {
    const set = (value) => (draft.fields[each.name] = value);
    return renderField(each, draft.fields[each.name], set, [...path, each.name], places);
  });
}

function labelled(field, control, path, places) {
  const problem = place(control, field, path, places);
  const label = el("label", { for: control.id, class: field.quiet && "visually-hidden" }, labelOf(field));
  return el("div", { class: "field" }, label, control, hintFor(control, field), problem);
}

function checkbox(field, draft, set, path, places) {
  const input = el("input", { type: "checkbox", id: unique("field"), onchange: () => set(input.checked) });
  input.checked = draft;
  const problem = place(input, field, path, places);
  const label = el("label", { class: "check" }, input, el("span", {}, labelOf(field)));
  return el("div", { class: "field" }, label, hintFor(input, field), problem);
}

function select(field, draft, set) {
  const control = el("select", { onchange: () => set(Number(control.value)) });
  const none = field.required ? "Choose…" : "Not set";
  if (!field.required || field.options.length > 1) control.append(el("option", { value: "-1" }, none));
  control.append(...field.options.map(({ label }, index) => el("option", { value: index }, label)));
  control.value = String(draft);
  return control;
}

function textControl(field, draft, set) {
  const plain = { autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: defaultOf(field) };
  const special = field.kind === "number" ? numeric(field) : (INPUTS[field.format] ?? { type: "text" });
  const long = field.kind === "json" || field.multiline;
  const control = long ? el("textarea", { rows: 3, ...plain }) : el("input", { ...plain, ...special });
  control.value = draft;
  if (!long && control.value !== draft) {
    control.type = "text"; // an invalid date would be sent without being visible
    control.value = draft;
  }
  control.addEventListener("input", () => set(typed(control, field)));
  return control;
}

function typed(control, field) {
  if (control.validity.badInput) return NOT_A_NUMBER;
  // Browsers leave out zero seconds; the format requires them.
  if (field.format === "time" && /^\d\d:\d\d$/.test(control.value)) return `${control.value}:00`;
  return control.value;
}

function numeric(field) {
  const limits = { min: field.minimum ?? field.exclusiveMinimum, max: field.maximum ?? field.exclusiveMaximum };
  return { type: "number", ...limits, step: field.multipleOf ?? (field.integer ? 1 : "any") };
}

function list(field, draft, path, places) {
  const items = el("div", { class: "items" });
  const add = el("button", { class: "button small", type: "button", onclick: append }, `Add ${field.label}`);
  const problem = place(add, field, path, places);

  function append() {
    draft.push(emptyDraft(field.item));
    show();
    items.lastElementChild.querySelector("input, select, textarea")?.focus();
  }

  function remove(index) {
    draft.splice(index, 1);
    show();
    add.focus();
  }

  function show() {
    fill(items, draft.map((each, index) => listItem(each, index)));
  }

  function listItem(each, index) {
    const label = `${field.label} ${index + 1}`;
    const set = (value) => (draft[index] = value);
    const inner = renderField({ ...field.item, label, name: label, listed: true }, each, set, [...path, index], places);
    const cross = el("button", { class: "button icon", type: "button", "aria-label": `Remove ${label}` }, "×");
    cross.addEventListener("click", () => remove(index));
    return el("div", { class: "item" }, inner, cross);
  }

  show();
  return nested(field, hintFor(add, field), items, problem, el("div", {}, add));
}

function group(field, draft, path, places) {
  const inner = el("div", { class: "members" }, renderFields(field.fields, draft, path, places));
  if (field.required) {
    return nested(field, hint(field), inner);
  }
  const include = el("input", { type: "checkbox", onchange: () => show(include.checked) });

  function show(sent) {
    draft.sent = sent;
    inner.hidden = !sent;
  }
  include.checked = draft.sent;
  show(draft.sent);
  const box = el("label", { class: "check" }, include, `Send ${field.label}`);
  return nested(field, hint(field), box, inner);
}

function alternatives(field, draft, path, places) {
  const choose = select({ ...field, options: field.branches }, draft.branch, (branch) => show((draft.branch = branch)));
  choose.setAttribute("aria-label", `Kind of ${field.label}`);
  const problem = place(choose, field, path, places);
  const inner = el("div", { class: "members" });

  function show(branch) {
    const chosen = field.branches[branch]?.field;
    inner.hidden = !chosen || isFixed(chosen);
    const set = (value) => (draft.drafts[branch] = value);
    const unlabelled = { ...chosen, listed: true, quiet: true }; // the legend is the label
    fill(inner, !inner.hidden && renderField(unlabelled, draft.drafts[branch], set, path, places));
    // The control inside shows the problems of this path.
    if (inner.hidden) places.set(JSON.stringify(path), { control: choose, problem });
  }
  show(draft.branch);
  return nested(field, hint(field), choose, problem, inner);
}

/** A choice with one option: only its name is shown. */
function isFixed(field) {
  return field.kind === "choice" && field.options.length === 1;
}

function nested(field, ...children) {
  return el("fieldset", { class: "field nested" }, el("legend", {}, labelOf(field)), children);
}

/** A title that differs from the name stands beside it, because calls use the name. */
function labelOf(field) {
  const bare = (text) => text.toLowerCase().replaceAll(/[\s_-]/g, "");
  const renamed = bare(field.label) !== bare(field.name);
  return [
    field.label,
    renamed && [" ", el("code", {}, field.name)],
    field.required && !field.listed && [" ", el("span", { class: "note" }, "required")],
  ];
}

function hint(field) {
  const unseen = ["array", "choice", "union"].includes(field.kind) ? defaultOf(field) : null;
  const text = [field.description, limitsOf(field), unseen].filter(Boolean).join(" · ");
  return text ? el("p", { class: "hint", id: unique("hint") }, text) : null;
}

function hintFor(control, field) {
  const note = hint(field);
  if (note) control.setAttribute("aria-describedby", note.id);
  return note;
}

function limitsOf({ minimum, maximum, minLength, maxLength, minItems, maxItems, kind, whole }) {
  if (kind === "json") return whole ? `JSON ${whole === "array" ? "list" : whole}` : "JSON";
  const length = range(minLength, maxLength, " characters") || range(minItems, maxItems, " items");
  return range(minimum, maximum, "") || length;
}

function range(least, most, unit) {
  if (least === undefined && most === undefined) return "";
  if (least === undefined) return `at most ${most}${unit}`;
  if (most === undefined) return least > 0 || !unit ? `at least ${least}${unit}` : "";
  return `${least} to ${most}${unit}`;
}

/** The default that the server uses if nothing is sent. */
function defaultOf(field) {
  if (field.default === undefined || field.default === null || field.default === "") return null;
  return `default: ${typeof field.default === "string" ? field.default : JSON.stringify(field.default)}`;
}

/** The element for an error message, empty at first. */
function place(control, field, path, places) {
  control.id ||= unique("field");
  if (field.required && control.matches("input, select, textarea")) control.setAttribute("aria-required", "true");
  const problem = el("p", { class: "problem", id: unique("problem"), hidden: true });
  places.set(JSON.stringify(path), { control, problem });
  return problem;
}

/** Shows an error message at `place`, or removes it if the message is empty. */
export function mark({ control, problem }, message) {
  const others = (control.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== problem.id);
  control.setAttribute("aria-describedby", (message ? [problem.id, ...others] : others).join(" "));
  if (message) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
  problem.textContent = message;
  problem.hidden = !message;
  control.closest(".field").toggleAttribute("data-invalid", Boolean(message));
}
