// Next steps from the proxy: commands in 'quotes' are shown as code and can be copied.

import { copyButton, el } from "./dom.js";

// A quote begins after a space or bracket and ends before one or a full stop; apostrophes inside words do not count.
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

// The proxy words this for agents, which must not consent for their user; the reader of this page is the user.
const TO_AGENTS = "Only the user may agree, by running 'uno-devserver trust' in the workspace;";
const TO_USERS = "If you trust its code, run 'uno-devserver trust' in the workspace;";
// They call a tool, where the page has a button.
const BY_CALL = /; the next tool call (?:makes the proxy start it|tries) again/;
const BY_BUTTON = ", then press “Restart server” above";
const TOOL = /\b(uno_app_\w+)/;

/** The same for the next step of an issue; a tool to call becomes a link to its form. */
export function nextStep(remedy) {
  const parts = remedy.replace(TO_AGENTS, TO_USERS).replace(BY_CALL, BY_BUTTON).split(TOOL);
  return parts.map((part, index) =>
    index % 2 ? el("a", { href: `#tools/${part}` }, part) : withCommands(part),
  );
}

/** A single word is the name of a program or a field, which need not be copied. */
function command(text) {
  const code = el("code", {}, text);
  if (!text.includes(" ")) return code;
  const button = copyButton(() => text);
  button.setAttribute("aria-label", `Copy ${text}`);
  return el("span", { class: "command" }, code, button);
}
