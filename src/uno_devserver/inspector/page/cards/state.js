// The most important facts: whether tools can be called, and which server answers them.

import { age } from "../ages.js";
import { el } from "../dom.js";
import { moment, plural } from "../format.js";
import { kindOf } from "../state-kinds.js";
import { pathText } from "../paths.js";
import { card, facts } from "./card.js";

const BEHIND = {
  dotnet: "Uno Host (.NET)",
  bundled: "Uno Host (bundled, Python)",
  command: "MCP server (a command)",
};

const MEANINGS = {
  Initializing: "The proxy has just begun.",
  Discovering: "Looking for the workspace, its SDK and its add-ins.",
  Launching: "Starting the server. Tools are offered already; calls wait for it.",
  Connecting: "The server runs and is being greeted.",
  Connected: "Tool calls are answered.",
  Reconnecting: "The server has gone; the next one is being started. Calls wait for it.",
  Degraded: "There is no server to call. The issues say why, and what to do.",
  Shutdown: "The proxy ends.",
};

export const stateCard = () =>
  card({
    title: "State",
    wide: true,
    titled: false,
    pick: ({ health: { status, issues, connectionState, toolCount, proxy, servers }, startedAt }) => ({
      status,
      isFine: status === "Healthy" && issues.length === 0,
      startedAt,
      state: connectionState,
      upstream: proxy.upstream,
      servers: servers?.map((server) => server.name),
      clients: proxy.clients,
      toolCount,
      httpEndpoint: proxy.httpEndpoint,
      restarts: proxy.restarts,
      reloads: proxy.reloads,
    }),
    render: (data) => [
      el(
        "div",
        { class: "hero", "data-kind": kindOf(data.state) },
        el("span", { class: "dot", "data-kind": kindOf(data.state), "aria-hidden": "true" }),
        el("span", { class: "hero-state", "data-field": "state" }, data.state),
        el("span", { class: "badge", "data-kind": kindOf(data.status), "data-field": "status" }, data.status),
        el("p", { class: "hero-meaning muted" }, MEANINGS[data.state], data.isFine && " Nothing is wrong."),
        el("p", { class: "last-seen" }, "As last seen: this page hears nothing at the moment."),
      ),
      el("div", { class: "hero-facts" }, behind(data.upstream, data.servers), around(data)),
    ],
  });

function behind(upstream, servers) {
  if (!upstream) return facts([["Behind the proxy", servers ? servers.join(", ") : "Nothing was started yet."]]);
  return facts([
    ["Behind the proxy", BEHIND[upstream.kind] ?? "Not known yet"],
    ["Name", named(upstream)],
    [
      "Process",
      upstream.processId && mono(upstream.processId, upstream.owned ? "started by this proxy" : "found running"),
    ],
    ["Endpoint", upstream.endpoint && mono(upstream.endpoint)],
    ["MCP version", upstream.protocolVersion && mono(upstream.protocolVersion)],
    ["Transport", upstream.transport],
    ["Its output", upstream.logFile && pathText(upstream.logFile)],
  ]);
}

function named(upstream) {
  return upstream.name && [upstream.name, upstream.version && [" ", mono(upstream.version)]];
}

function around({ clients, toolCount, httpEndpoint, restarts, reloads, startedAt }) {
  const started = moment(startedAt);
  return facts([
    [
      "Clients",
      clients.length
        ? el(
            "ul",
            {},
            clients.map((name) => el("li", {}, name)),
          )
        : "None has greeted yet",
    ],
    ["Tools", String(toolCount)],
    ["MCP over HTTP", httpEndpoint && mono(httpEndpoint)],
    ["Proxy started", started && age(started)],
    ["Server replaced", replaced(restarts, reloads)],
  ]);
}

function replaced(restarts, reloads) {
  const reasons = [
    restarts && `${plural(restarts, "time")} after it ended`,
    reloads && `${plural(reloads, "time")} for newer code`,
  ];
  return reasons.filter(Boolean).join(", ") || "Never";
}

function mono(value, note = "") {
  return [el("span", { class: "mono" }, value), note && el("span", { class: "muted" }, ` ${note}`)];
}
