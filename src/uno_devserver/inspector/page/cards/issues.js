// The issues, the worst first, each with its next step, and why the last server ended.

import { badge, copyButton, el } from "../dom.js";
import { kindOf } from "../state-kinds.js";
import { nextStep } from "../remedy.js";
import { card, facts } from "./card.js";

export const issuesCard = () =>
  card({
    title: "Issues",
    wide: true,
    pick: ({ health: { issues } }) =>
      issues.length ? issues.toSorted((one, other) => isFatal(other) - isFatal(one)) : null,
    render: (issues) => el("ul", { class: "issues" }, bySteps(issues).map(issuesItem)),
  });

/** Groups issues with the same next step, because one is mostly the cause of the other. */
function bySteps(issues) {
  return [...Map.groupBy(issues, (issue) => issue.remediation || issue).values()];
}

function isFatal(issue) {
  return issue.severity === "Fatal";
}

function issuesItem(issues) {
  const [{ severity, remediation }] = issues;
  return el(
    "li",
    { class: "issue", "data-kind": kindOf(severity) },
    issues.map(what),
    remediation && el("p", { class: "issue-remedy" }, el("strong", {}, "Next: "), nextStep(remediation)),
  );
}

// A program's output begins on the next line, or indented after a colon.
const PRINTED = /\n|(?<=:) (?=\s)/;

function what({ code, severity, message }) {
  const [sentence, ...printed] = message.split(PRINTED);
  return [
    el("p", { class: "issue-head" }, badge(kindOf(severity), severity), el("code", {}, code)),
    el("p", { class: "issue-message" }, sentence),
    printed.length > 0 &&
      el("pre", { class: "code scroll", tabindex: "0", role: "group", "aria-label": "Printed" }, printed.join("\n")),
  ];
}

export const lastExitCard = () =>
  card({
    title: "Last exit",
    wide: true,
    pick: ({ health }) => health.proxy.lastExit,
    render: ({ reason, exitCode, lastLines }) => [
      facts([
        ["Reason", reason],
        ["Exit code", exitCode === null ? null : el("span", { class: "mono" }, exitCode)],
      ]),
      lastLines.length > 0 && [
        el(
          "p",
          { class: "lines-head muted" },
          "What it printed last ",
          copyButton(() => lastLines.join("\n")),
        ),
        el(
          "pre",
          { class: "code scroll", tabindex: "0", role: "group", "aria-label": "What it printed last" },
          lastLines.join("\n"),
        ),
      ],
    ],
  });
