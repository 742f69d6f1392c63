// Next steps as the proxy words them: what stands in 'quotes' is typed, so it is shown as code and can be copied.

import { copyButton, el } from "./dom.js";

// A quote begins behind a space or bracket and ends before one or a full stop; an apostrophe within a word does neither.
const QUOTED = /(?<=^|[\s(])'([^']+)'(?=[\s.,;:!?)]|$)/g;

/** Nodes for a paragraph. */
export function withCommands(sentence) {
  const nodes = [];
  let end = 0;
  for (const found of sentence.matchAll(QUOTED)) {
    nodes.push(sentence.slice(end, found.index), command(found[1]));
    end = found.index + found[0].length;
  }
  return [...nodes, sentence.slice(end)];
}

/** A single word is the name of a program or a field: there is nothing to copy. */
function command(text) {
  const code = el("code", {}, text);
  if (!text.includes(" ")) return code;
  const button = copyButton(() => text);
  button.setAttribute("aria-label", `Copy ${text}`);
  return el("span", { class: "command" }, code, button);
}
