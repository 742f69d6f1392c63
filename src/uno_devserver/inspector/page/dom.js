// Elements from data. Whatever comes from the proxy becomes text nodes and attributes here, never markup.

/** el("button", {class: "button", type: "button", onclick: go}, "Go", icon). What is null or false is left out. */
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

/** Puts these children in the place of all that the element has. */
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

/** A labelled control; the label's text is what assistive technology and tests find it by. */
export function field(label, control, hint = null) {
  control.id ||= unique("field");
  const note = hint === null ? null : el("p", { class: "hint", id: unique("hint") }, hint);
  if (note) control.setAttribute("aria-describedby", note.id);
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control, note);
}

let count = 0;

/** An id that no other element of the page has. */
export function unique(prefix) {
  count += 1;
  return `${prefix}-${count}`;
}

const COPIED_MS = 1500; // long enough to be read, short enough to be ready for the next

/** `read` is asked when the button is pressed, so that what is copied is what is shown then. */
export function copyButton(read, label = "Copy", classes = "button small") {
  const button = el("button", { class: classes, type: "button", onclick: copy }, label);
  let resetting = 0;

  async function copy() {
    clearTimeout(resetting);
    try {
      await navigator.clipboard.writeText(read());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed"; // the browser asks its user, who may say no
    }
    resetting = setTimeout(() => (button.textContent = label), COPIED_MS);
  }
  return button;
}

/** What stands where there is nothing to show: a sentence, and what would change that. */
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
 * A table that becomes a list of blocks where it is narrow. `columns` are names; a row is an array of cells (nodes or
 * texts) or {attributes, cells}. The roles are repeated because a changed `display` takes them away.
 */
export function table(caption, columns, rows, attributes = {}) {
  return el(
    "table",
    { class: "table stacking", role: "table", ...attributes },
    el("caption", {}, caption),
    el(
      "thead",
      { role: "rowgroup" },
      el(
        "tr",
        { role: "row" },
        columns.map((name) => el("th", { scope: "col", role: "columnheader" }, name)),
      ),
    ),
    el(
      "tbody",
      { role: "rowgroup" },
      rows.map((row) => tableRow(columns, row)),
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
