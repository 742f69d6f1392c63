// The questions of a server to the user during a call, as forms, one after the other.

import { el } from "./dom.js";
import { createForm } from "./forms.js";
import { McpError } from "./mcp.js";
import { describe } from "./schema.js";

const NOT_ASKED = -32601;
const WEB = /^https?:\/\//i;

/** The answers by the questions' names; rejects when `signal` cancels the call. The forms appear in `place`. */
export async function answerAll(questions, place, signal) {
  const answers = Object.create(null); // a question may have the name __proto__
  for (const [name, question] of Object.entries(questions)) {
    if (question?.method !== "elicitation/create") {
      throw new McpError(NOT_ASKED, `The server asked for '${question?.method}', which this page cannot answer.`);
    }
    answers[name] = await answer(question.params ?? {}, place, signal);
  }
  return answers;
}

function answer(params, place, signal) {
  const byAddress = params.mode === "url";
  const form = byAddress ? null : createForm(describe(params.requestedSchema, { prefilled: true }));
  return new Promise((resolve, reject) => {
    const accept = el("button", { class: "button primary", type: "submit" }, byAddress ? "Done" : "Send answer");
    const refuse = () => end({ action: "decline" });
    const decline = el("button", { class: "button", type: "button", onclick: refuse }, "Decline");
    const element = el(
      "form",
      { class: "question notice", "aria-label": "Question", novalidate: true, onsubmit: submit },
      el("p", { class: "question-text" }, String(params.message ?? "The server asks:")),
      byAddress ? address(params.url) : form.element,
      el("div", { class: "actions" }, accept, decline),
    );

    function submit(event) {
      event.preventDefault();
      const content = form?.read();
      if (byAddress) end({ action: "accept" });
      else if (content !== undefined) end({ action: "accept", content });
    }

    function end(given) {
      signal.removeEventListener("abort", abort);
      element.remove();
      resolve(given);
    }

    function abort() {
      element.remove();
      reject(signal.reason);
    }

    signal.addEventListener("abort", abort, { once: true });
    place.append(element);
    (element.querySelector("input, select, textarea") ?? accept).focus();
  });
}

/** The full URL, because the user has to judge it; only web addresses become links. */
function address(url) {
  const text = String(url);
  if (!WEB.test(text)) return el("p", {}, el("code", {}, text));
  return el("p", {}, el("a", { href: text, target: "_blank", rel: "noopener noreferrer" }, text));
}
