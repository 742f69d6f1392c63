// The resources of the server and their URI templates: a list, a form for the variables, and the contents by type.

import { createCalling } from "../call-panel.js";
import { createChooser } from "../chooser.js";
import { badge, el, fill } from "../dom.js";
import { bytes } from "../format.js";
import { createClient } from "../mcp.js";
import { createMemory } from "../tab-memory.js";
import { renderResource } from "../results.js";
import { describeTexts } from "../schema.js";
import { expand, variablesOf } from "../templates.js";

export function create(context) {
  const client = createClient(context);
  return createChooser({
    title: "Resources",
    noun: "resource",
    route: "resources",
    hint: "The server behind the proxy offers none, or has not started yet.",
    context,
    load: (options) => load(client, options),
    detail: (entry) => detail(entry, client),
    stranger: (uri) => entryOf({ uri, name: uri }, "Resources"), // a tool may link to one that is not in the list
  });
}

async function load(client, options) {
  const [resources, templates] = await Promise.all([
    client.list("resources/list", "resources", options),
    client.list("resources/templates/list", "resourceTemplates", options),
  ]);
  const group = templates.length ? "Resources" : "";
  return [
    ...resources.map((resource) => entryOf(resource, group)),
    ...templates.map((template) => ({ ...entryOf({ ...template, uri: template.uriTemplate }, "Templates"), template })),
  ];
}

function entryOf(resource, group) {
  const { uri, name, title, description = "" } = resource;
  const shown = title || name || uri;
  const hint = uri === shown ? "" : uri;
  const search = `${shown} ${uri} ${description}`;
  return { key: uri, name: shown, hint, group, search, shape: JSON.stringify(resource), resource };
}

function detail({ resource, template }, client) {
  const addressed = (values) => (template ? expand(template.uriTemplate, values) : resource.uri);
  const calling = createCalling({
    field: template ? describeTexts(variablesOf(template.uriTemplate)) : null,
    label: `Read ${resource.name ?? resource.uri}`,
    verb: "Read",
    memory: template && createMemory("template", template.uriTemplate),
    run: (values, options) => client.request("resources/read", { uri: addressed(values) }, options),
    render,
  });
  const head = el("header", { class: "detail-head" }, about(resource));
  if (!template) calling.submit(); // shown at once, because reading changes nothing
  const refresh = (entry) => fill(head, about(entry.resource)); // the URI, which decides the form, is the key
  return { element: el("article", { class: "card detail" }, head, calling.element), refresh };
}

function about({ uri, name, title, description, mimeType, size }) {
  const marks = [mimeType && badge("quiet", mimeType), Number.isFinite(size) && [" ", badge("quiet", bytes(size))]].filter(Boolean);
  return [
    el("h3", {}, title || name || uri),
    el("p", {}, el("code", {}, uri)),
    marks.length > 0 && el("p", { class: "marks" }, marks),
    description && el("p", { class: "prose" }, description),
  ];
}

function render(result) {
  const contents = Array.isArray(result.contents) ? result.contents : [];
  const nodes = contents.length ? contents.map(renderResource) : el("p", { class: "muted" }, "It is empty.");
  return { outcome: "ok", nodes };
}
