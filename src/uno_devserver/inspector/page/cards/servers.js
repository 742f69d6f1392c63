// The further servers behind the proxy, where there are some: the state of each, its tools, and how often it was replaced.

import { badge, el, table } from "../dom.js";
import { kindOf } from "../state-kinds.js";
import { card } from "./card.js";

export const furtherServersCard = () =>
  card({
    title: "Further servers",
    wide: true,
    pick: ({ health: { servers } }) =>
      servers?.length
        ? servers.map(({ name, state, toolCount, restarts, reloads, upstream }) => {
            const { processId, endpoint } = upstream ?? {};
            return { name, state, toolCount, restarts, reloads, processId, endpoint };
          })
        : null,
    render: (servers) => {
      const columns = ["Server", "State", "Tools", "Restarts", "Reloads", "Process or address"];
      const made = table("Further servers and their states", columns, servers.map(row));
      made.caption.classList.add("visually-hidden");
      return made;
    },
  });

function row({ name, state, toolCount, restarts, reloads, processId, endpoint }) {
  return [
    name,
    badge(kindOf(state), state),
    String(toolCount),
    String(restarts),
    String(reloads),
    el("span", { class: "mono" }, processId ? String(processId) : (endpoint ?? "–")),
  ];
}
