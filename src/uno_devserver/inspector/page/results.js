// Results of a server as elements. Nothing in a result becomes markup or is fetched; unknown content is shown as JSON,
// so that nothing is hidden.

import { copyButton, el, fill } from "./dom.js";
import { parseExactly } from "./exact-json.js";
import { bytes } from "./format.js";

const SHOWN_CHARACTERS = 20_000; // more takes long to lay out, and is not read
const SHOWN_PARTS = 100; // likewise
const IMAGE = /^image\/[\w.+-]+$/;
const AUDIO = /^audio\/[\w.+-]+$/;
// Maps without a prototype, because their keys come from a server.
const ROLES = { __proto__: null, user: "User", assistant: "Assistant" };
const WEB = /^https?:\/\//i;

/** A result of tools/call. */
export function renderToolResult(result) {
  const content = Array.isArray(result.content) ? result.content : [];
  const structured = result.structuredContent;
  if (structured === undefined) {
    return content.length ? renderContents(content) : [el("p", { class: "muted" }, "The answer is empty.")];
  }
  // By convention the text repeats the structured content, for clients that cannot read it.
  const repeated = content.filter((each) => each?.type === "text" && saysTheSame(each.text, structured));
  const rest = content.filter((each) => !repeated.includes(each));
  return [renderContents(rest), jsonBlock(structured, "Structured content")];
}

/** The messages of a prompt. */
export function renderMessages(messages) {
  const items = messages.map((message) => {
    const { role, content } = message ?? {};
    const contents = renderContents(Array.isArray(content) ? content : [content]);
    return el("li", { class: "message", "data-role": role }, el("h4", {}, ROLES[role] ?? String(role)), contents);
  });
  return el("ol", { class: "messages" }, items);
}

export function renderContents(contents) {
  const nodes = contents.slice(0, SHOWN_PARTS).map(renderContent);
  if (contents.length <= SHOWN_PARTS) return nodes;
  const label = `Show all (${contents.length.toLocaleString("en")} parts)`;
  const more = el("button", { class: "button small", type: "button" }, label);
  more.addEventListener("click", () => {
    const rest = contents.slice(SHOWN_PARTS).map((each, index) => renderContent(each, SHOWN_PARTS + index));
    more.replaceWith(...rest);
  });
  return [...nodes, more];
}

function renderContent(content, index) {
  const known = RENDERERS[content?.type];
  return (known && known(content, index)) || jsonBlock(content, "Content of a kind that this page does not know");
}

/** One of the contents of a resource. */
export function renderResource(resource) {
  const mime = typeof resource?.mimeType === "string" ? resource.mimeType : "";
  const about = el("p", { class: "caption mono" }, [resource?.uri, mime].filter(Boolean).join(" · "));
  if (typeof resource?.text === "string") {
    return el("figure", { class: "content" }, about, resourceText(resource.text, mime));
  }
  if (typeof resource?.blob === "string") {
    return el("figure", { class: "content" }, about, renderBlob(resource.blob, mime, resource.uri));
  }
  return jsonBlock(resource, "Resource");
}

export function textBlock(text, { mime = "" } = {}) {
  const long = text.length > SHOWN_CHARACTERS;
  const pre = el("pre", { class: "code", "data-mime": mime || null }, long ? text.slice(0, SHOWN_CHARACTERS) : text);
  const copy = copyButton(() => text);
  const block = el("div", { class: "block" }, el("div", { class: "block-tools" }, copy), pre);
  if (long) {
    const rest = `Show all (${text.length.toLocaleString("en")} characters)`;
    const more = el("button", { class: "button small", type: "button" }, rest);
    more.addEventListener("click", () => {
      pre.textContent = text;
      more.remove();
      copy.focus();
    });
    block.append(more);
  }
  return block;
}

export function jsonBlock(value, title) {
  const block = textBlock(JSON.stringify(value, null, 2) ?? "undefined", { mime: "application/json" });
  block.querySelector(".block-tools").prepend(el("span", { class: "caption" }, title));
  return block;
}

const RENDERERS = {
  __proto__: null,
  text: (content) => (typeof content.text === "string" ? textBlock(content.text) : undefined),
  image: ({ data, mimeType }, index) => {
    const shown = typeof data === "string" && IMAGE.test(mimeType);
    return shown ? image(data, mimeType, `Image ${index + 1} of the answer`) : undefined;
  },
  audio: ({ data, mimeType }) =>
    typeof data === "string" && AUDIO.test(mimeType) ? audio(data, mimeType) : undefined,
  resource: (content) => renderResource(content.resource),
  resource_link: (content) => (typeof content.uri === "string" ? resourceLink(content) : undefined),
};

function resourceText(text, mime) {
  if (/[/+]json\b/.test(mime)) {
    try {
      return textBlock(JSON.stringify(parseExactly(text), null, 2), { mime });
    } catch {
      // Not JSON: shown unchanged.
    }
  }
  return textBlock(text, { mime });
}

function renderBlob(blob, mime, uri) {
  if (IMAGE.test(mime)) return image(blob, mime, `Image ${uri ?? ""}`.trim());
  if (AUDIO.test(mime)) return audio(blob, mime);
  const name = String(uri ?? "").split(/[/\\?#]/).filter(Boolean).pop() ?? "resource";
  const size = bytes(Math.floor((blob.replace(/=+$/, "").length * 3) / 4));
  const href = dataUrl(blob, "application/octet-stream");
  const save = el("a", { class: "button small", href, download: name }, "Save");
  return el("p", { class: "binary" }, `${size} of ${mime || "data"} `, save);
}

function image(data, mime, description) {
  const size = el("span");
  const picture = el("img", { src: dataUrl(data, mime), alt: description });
  const frame = el("figure", { class: "content" }, picture, el("figcaption", { class: "caption" }, mime, size));
  picture.addEventListener("load", () => {
    size.textContent = ` · ${picture.naturalWidth} × ${picture.naturalHeight}`;
  });
  picture.addEventListener("error", () => fill(frame, el("p", { class: "problem" }, `This ${mime} cannot be shown.`)));
  return frame;
}

function audio(data, mime) {
  const player = el("audio", { controls: true, src: dataUrl(data, mime), "aria-label": "Audio of the answer" });
  return el("figure", { class: "content" }, player, el("figcaption", { class: "caption" }, mime));
}

function resourceLink({ uri, name, title, description, mimeType }) {
  const about = [mimeType, description].filter((each) => typeof each === "string" && each).join(" · ");
  return el(
    "p",
    { class: "content resource-link" },
    el("a", { href: `#resources/${encodeURIComponent(uri)}` }, title || name || uri),
    " ",
    el("code", {}, uri),
    WEB.test(uri) && [" ", el("a", { href: uri, target: "_blank", rel: "noopener noreferrer" }, "Open in the browser")],
    about && el("span", { class: "caption" }, about),
  );
}

/** `mime` was checked, so it cannot inject anything into the URL. */
function dataUrl(data, mime) {
  return `data:${mime};base64,${data}`;
}

function saysTheSame(text, structured) {
  try {
    return JSON.stringify(parseExactly(text)) === JSON.stringify(structured);
  } catch {
    return false;
  }
}
