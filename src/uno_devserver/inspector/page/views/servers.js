// The Hosts and proxies of all workspaces on this machine, with links to the inspectors of other proxies.

import { age } from "../ages.js";
import { badge, el, empty, fill, table } from "../dom.js";
import { moment } from "../format.js";
import { kindOf } from "../kinds.js";
import { pathText } from "../paths.js";

const HOST_KINDS = { dotnet: ".NET", bundled: "Bundled" };

export function create() {
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
          ? proxyTable(state.proxies)
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

function proxyTable(proxies) {
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
        inspectorOf(each),
      ],
    }));
  return table(
    "What AI clients talk to",
    ["Workspace", "Process", "State", "Health", "Clients", "Tools", "Inspector"],
    rows,
  );
}

function inspectorOf({ own, inspector, processId }) {
  if (own) return "this page";
  if (!isWeb(inspector)) return "not open";
  return el(
    "a",
    {
      href: inspector,
      target: "_blank",
      rel: "noopener noreferrer",
      "aria-label": `Open the inspector of process ${processId}`,
    },
    "Open",
  );
}

/** The address comes from a file of another process, so only local pages are opened. */
function isWeb(address) {
  return /^http:\/\/(localhost|127\.0\.0\.1|\[::1\]):\d+\//.test(address ?? "");
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
