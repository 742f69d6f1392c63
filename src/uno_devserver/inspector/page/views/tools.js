// The tools of the server: the description of each, a form to call it, and the result.

import { createCalling } from "../call-panel.js";
import { createChooser } from "../chooser.js";
import { badge, el, fill } from "../dom.js";
import { createClient } from "../mcp.js";
import { createMemory } from "../tab-memory.js";
import { callTool, renderNotRun } from "../restart.js";
import { jsonBlock, renderToolResult } from "../results.js";
import { describe } from "../schema.js";

// Only the annotations that a tool has; defaults are not guessed.
const MARKS = [
  { hint: "readOnlyHint", word: "read-only", kind: "ok", about: "It changes nothing." },
  { hint: "destructiveHint", word: "destructive", kind: "bad", about: "It may destroy something." },
  { hint: "idempotentHint", word: "idempotent", kind: "quiet", about: "Calling it twice is as good as once." },
  { hint: "openWorldHint", word: "open world", kind: "warn", about: "It reaches out of this machine." },
];

export function create(context) {
  const client = createClient(context);
  return createChooser({
    title: "Tools",
    noun: "tool",
    route: "tools",
    hint: "The server behind the proxy offers none, or has not started yet.",
    context,
    load: async (options) => grouped(await client.list("tools/list", "tools", options), context.store.state.ownTools),
    detail: (entry) => detail(entry.tool, client),
  });
}

// Those of the proxy come last: who opens the page looks for those of the server.
function grouped(tools, ownNames) {
  const own = tools.filter((tool) => ownNames.includes(tool.name));
  const others = tools.filter((tool) => !ownNames.includes(tool.name));
  const group = own.length && others.length ? ["Of the server", "Of uno-devserver"] : ["", ""];
  return [...others.map((tool) => entryOf(tool, group[0])), ...own.map((tool) => entryOf(tool, group[1]))];
}

function entryOf(tool, group) {
  const title = tool.title ?? tool.annotations?.title ?? "";
  const search = [tool.name, title, tool.description ?? "", ...marksOf(tool).map((mark) => mark.word)].join(" ");
  return { key: tool.name, name: tool.name, hint: title, group, search, shape: JSON.stringify(tool), tool };
}

function detail(tool, client) {
  const calling = createCalling({
    field: describe(tool.inputSchema),
    label: `Call ${tool.name}`,
    verb: "Call",
    memory: createMemory("tool", tool.name),
    run: (values, options) => callTool(client, { name: tool.name, arguments: values }, options),
    render: ({ result, waited }) => ({
      outcome: result.isError ? "error" : "ok",
      nodes: renderNotRun(result) ?? [
        waited && el("p", { class: "muted" }, "The server has started again; then the call was run."),
        renderToolResult(result),
      ],
    }),
  });
  const head = el("header", { class: "detail-head" }, about(tool));
  const foot = el("footer", { class: "detail-foot" }, schemas(tool));
  let shape = JSON.stringify(tool.inputSchema);

  function refresh({ tool: changed }) {
    fill(head, about(changed));
    fill(foot, schemas(changed));
    const other = JSON.stringify(changed.inputSchema);
    if (other !== shape) calling.change(describe(changed.inputSchema));
    shape = other;
  }

  return { element: el("article", { class: "card detail" }, head, calling.element, foot), refresh };
}

function about(tool) {
  const title = tool.title ?? tool.annotations?.title;
  const marks = marksOf(tool).map((mark) => [badge(mark.kind, el("span", { title: mark.about }, mark.word)), " "]);
  return [
    el("h3", { class: "mono" }, tool.name),
    title && title !== tool.name && el("p", { class: "detail-title" }, title),
    marks.length > 0 && el("p", { class: "marks" }, marks),
    tool.description && el("p", { class: "prose" }, tool.description),
  ];
}

function marksOf(tool) {
  const annotations = tool.annotations ?? {};
  // A read-only tool cannot be destructive, whatever its other annotations say.
  const harmless = annotations.readOnlyHint === true;
  return MARKS.filter(({ hint }) => annotations[hint] === true && !(harmless && hint === "destructiveHint"));
}

function schemas(tool) {
  const parts = { "Input schema": tool.inputSchema, "Output schema": tool.outputSchema, Metadata: tool._meta };
  return Object.entries(parts)
    .filter(([, value]) => value !== undefined)
    .map(([title, value]) => el("details", {}, el("summary", {}, title), jsonBlock(value, "JSON")));
}
