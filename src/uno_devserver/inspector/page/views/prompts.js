// The prompts of the server: the arguments of each, and its messages.

import { createCalling } from "../call-panel.js";
import { createChooser } from "../chooser.js";
import { el, fill } from "../dom.js";
import { createClient } from "../mcp.js";
import { createMemory } from "../tab-memory.js";
import { renderMessages } from "../results.js";
import { describeTexts } from "../schema.js";

export function create(context) {
  const client = createClient(context);
  return createChooser({
    title: "Prompts",
    noun: "prompt",
    route: "prompts",
    hint: "The server behind the proxy offers none, or has not started yet.",
    context,
    load: async (options) => (await client.list("prompts/list", "prompts", options)).map(entryOf),
    detail: (entry) => detail(entry.prompt, client),
  });
}

function entryOf(prompt) {
  const { name, title = "", description = "" } = prompt;
  const search = `${name} ${title} ${description}`;
  return { key: name, name, hint: title, search, shape: JSON.stringify(prompt), prompt };
}

function detail(prompt, client) {
  const calling = createCalling({
    field: fieldOf(prompt),
    label: `Get ${prompt.name}`,
    verb: "Get messages",
    memory: createMemory("prompt", prompt.name),
    run: (values, options) => client.request("prompts/get", { name: prompt.name, arguments: values }, options),
    render: (result) => ({ outcome: "ok", nodes: messages(result) }),
  });
  const head = el("header", { class: "detail-head" }, about(prompt));

  function refresh({ prompt: changed }) {
    fill(head, about(changed));
    calling.change(fieldOf(changed));
  }

  return { element: el("article", { class: "card detail" }, head, calling.element), refresh };
}

function fieldOf(prompt) {
  return describeTexts(Array.isArray(prompt.arguments) ? prompt.arguments : []);
}

function about(prompt) {
  return [
    el("h3", { class: "mono" }, prompt.name),
    prompt.title && el("p", { class: "detail-title" }, prompt.title),
    prompt.description && el("p", { class: "prose" }, prompt.description),
  ];
}

function messages(result) {
  const all = Array.isArray(result.messages) ? result.messages : [];
  return all.length ? renderMessages(all) : el("p", { class: "muted" }, "It gives no messages.");
}
