// The add-ins: as the Host reports them, or else as they were found on disk.

import { badge, el, table } from "../dom.js";
import { pathText } from "../paths.js";
import { withCommands } from "../remedy.js";
import { card } from "./card.js";

const NOT_AGREED =
  "Those of the workspace itself are not loaded: you have not agreed yet that its code may run. " +
  "To agree, run 'uno-devserver trust' there.";

export const addInsCard = () =>
  card({
    title: "Add-ins",
    pick: ({ health }) => ({
      reported: health.addIns,
      loading: health.addInsLoading,
      found: health.discovery?.addIns ?? [],
      usesHost: health.proxy.upstream?.kind !== "command",
      refused: health.proxy.trusted === false,
    }),
    render: ({ refused, ...known }) => [
      (!refused || known.reported.length > 0) && addIns(known),
      refused && known.usesHost && el("p", { class: "why" }, withCommands(NOT_AGREED)),
    ],
  });

function addIns({ reported, loading, found, usesHost }) {
  if (reported.length)
    return addInTable(
      reported.map((each) => [each.name, each.version, status(each, loading), each.assemblyPath, each.error]),
    );
  if (found.length)
    return addInTable(
      found.map((each) => [each.packageName, each.packageVersion, badge("quiet", "Found"), each.entryPointDll, null]),
    );
  return el("p", { class: "muted" }, usesHost ? "The workspace has none." : "An MCP server of your own has none.");
}

function status({ loaded, error }, loading) {
  if (loaded) return error ? badge("warn", "Works in part") : badge("ok", "Loaded");
  return error || !loading ? badge("bad", "Not loaded") : badge("busy", "Loading");
}

function addInTable(addIns) {
  const rows = addIns.map(([name, version, state, path, error]) => [
    [
      el("span", {}, name),
      path && el("p", { class: "muted small" }, pathText(path)),
      error && el("p", { class: "problem" }, error),
    ],
    version ? el("span", { class: "mono" }, version) : "–",
    state,
  ]);
  const made = table("Add-ins and their status", ["Add-in", "Version", "Status"], rows);
  made.caption.classList.add("visually-hidden");
  return made;
}
