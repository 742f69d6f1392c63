// The Hosts and proxies of all workspaces on this machine, with a button that opens the inspector of another proxy.

import { age } from "../ages.js";
import { badge, el, empty, fill, table } from "../dom.js";
import { moment } from "../format.js";
import { kindOf } from "../state-kinds.js";
import { pathText } from "../paths.js";

const HOST_KINDS = { dotnet: ".NET", bundled: "Bundled" };

export function create({ key, announce }) {
  const hosts = el("div");
  const proxies = el("div");
  let shown = "";

  return {
    element: el(
      "section",
      {},
      el("h2", {}, "Servers"),
      el(
        "div",
        { class: "servers" },
        el("section", { class: "card", "aria-label": "Proxies" }, el("h3", {}, "Proxies"), proxies),
        el("section", { class: "card", "aria-label": "Hosts" }, el("h3", {}, "Hosts"), hosts),
      ),
    ),
    update(state, change) {
      if (!["snapshot", "servers"].includes(change)) return;
      const text = JSON.stringify([state.servers, state.proxies]);
      if (text === shown) return; // otherwise a selection would be lost
      shown = text;
      fill(
        proxies,
        state.proxies.length
          ? proxyTable(state.proxies, (processId) => open(processId, key, announce))
          : empty("No proxy is known.", "The list appears within a few seconds."),
      );
      fill(
        hosts,
        state.servers.length
          ? hostTable(state.servers)
          : empty("No Host runs on this machine.", "Your own MCP servers are not Hosts; see their proxies."),
      );
    },
  };
}

function proxyTable(proxies, open) {
  const own = (one) => Number(one.own);
  const rows = proxies
    .toSorted((one, other) => own(other) - own(one))
    .map((each) => ({
      attributes: { "data-own": each.own },
      cells: [
        pathText(each.solution ?? each.directory ?? "–"),
        el("span", { class: "mono" }, each.processId),
        badge(kindOf(each.state), each.state),
        each.status ? badge(kindOf(each.status), each.status) : "–",
        each.clients?.length ? each.clients.join(", ") : "none",
        String(each.toolCount ?? "–"),
        inspectorOf(each, open),
      ],
    }));
  return table(
    "What AI clients talk to",
    ["Workspace", "Process", "State", "Health", "Clients", "Tools", "Inspector"],
    rows,
  );
}

function inspectorOf({ own, inspector, processId }, open) {
  if (own) return "this page";
  if (!inspector) return "not open";
  const label = `Open the inspector of process ${processId}`;
  return el("button", { class: "button small", type: "button", "aria-label": label, onclick: () => open(processId) }, "Open");
}

/** Its address alone does not open it: our proxy asks the other one for a URL that does, once. */
async function open(processId, key, announce) {
  const request = { method: "POST", headers: { Authorization: `Bearer ${key}` }, body: String(processId) };
  const response = await fetch("/other-page", request).catch(() => null);
  const { url } = response?.ok ? await response.json() : {};
  if (isLocal(url)) window.open(url, "_blank", "noopener,noreferrer");
  else announce(`The inspector of process ${processId} cannot be opened.`);
}

/** The port comes from a file of another process, so only local pages are opened. */
function isLocal(address) {
  return /^http:\/\/(?:[0-9a-f]+\.)?localhost:\d+\//.test(address ?? "");
}

function hostTable(servers) {
  const rows = servers.map((each) => ({
    attributes: { "data-workspace": each.isInWorkspace },
    cells: [
      [
        pathText(each.solutionPath ?? each.workspaceDirectory ?? "No solution"),
        each.isInWorkspace && [" ", badge("busy", "this workspace")],
      ],
      el("span", { class: "mono" }, each.processId),
      HOST_KINDS[each.hostKind] ?? "–",
      el("span", { class: "mono" }, each.mcpEndpoint ?? each.port),
      started(each.startTime),
    ],
  }));
  return table("What apps and IDEs connect to", ["Solution", "Process", "Kind", "Endpoint", "Started"], rows);
}

function started(time) {
  const date = moment(time);
  return date ? age(date) : "–";
}
