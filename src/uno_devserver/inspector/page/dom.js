// Elements from data. Data from the proxy becomes text nodes and attributes, never markup.

/** el("button", {class: "button", type: "button", onclick: go}, "Go", icon). Null and false are left out. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

/** Replaces all children of the element. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false && child !== "")
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

/** A labelled control; assistive technology and tests find it by the text of the label. */
export function field(label, control, hint = null) {
  control.id ||= unique("field");
  const note = hint === null ? null : el("p", { class: "hint", id: unique("hint") }, hint);
  if (note) control.setAttribute("aria-describedby", note.id);
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control, note);
}

let count = 0;

/** An id that is unique on the page. */
export function unique(prefix) {
  count += 1;
  return `${prefix}-${count}`;
}

const COPIED_MS = 1500; // long enough to read, short enough for the next press

/** `read` is called when the button is pressed, so that the current text is copied. */
export function copyButton(read, label = "Copy", classes = "button small") {
  const button = el("button", { class: classes, type: "button", onclick: copy }, label);
  let resetting = 0;

  async function copy() {
    clearTimeout(resetting);
    try {
      await navigator.clipboard.writeText(read());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed"; // the browser asks the user, who may refuse
    }
    resetting = setTimeout(() => (button.textContent = label), COPIED_MS);
  }
  return button;
}

/** A placeholder where there is nothing to show: a sentence, and what would change that. */
export function empty(title, hint = "") {
  return el(
    "div",
    { class: "empty" },
    el("p", { class: "empty-title" }, title),
    hint && el("p", { class: "muted" }, hint),
  );
}

export function badge(kind, ...children) {
  return el("span", { class: "badge", "data-kind": kind }, children);
}

/**
 * A table that becomes a list of blocks on narrow screens. `columns` are names; a row is an array of cells (nodes or
 * texts) or {attributes, cells}. The roles are explicit, because a changed `display` removes them.
 */
export function table(caption, columns, rows, attributes = {}) {
  return el(
    "table",
    { class: "table stacking", role: "table", ...attributes },
    el("caption", {}, caption),
    tableHead(columns.map((name) => [name])),
    el(
      "tbody",
      { role: "rowgroup" },
      rows.map((row) => tableRow(columns, row)),
    ),
  );
}

/** The head of such a table; a column is its name and, if need be, the class of its cells. */
export function tableHead(columns) {
  return el(
    "thead",
    { role: "rowgroup" },
    el(
      "tr",
      { role: "row" },
      columns.map(([name, kind]) => el("th", { scope: "col", role: "columnheader", class: kind }, name)),
    ),
  );
}

function tableRow(columns, row) {
  const { attributes = {}, cells } = Array.isArray(row) ? { cells: row } : row;
  return el(
    "tr",
    { role: "row", ...attributes },
    cells.map((cell, index) =>
      index === 0
        ? el("th", { scope: "row", role: "rowheader", "data-label": columns[0] }, cell)
        : el("td", { role: "cell", "data-label": columns[index] }, cell),
    ),
  );
}
