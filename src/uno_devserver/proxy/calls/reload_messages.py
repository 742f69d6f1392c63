"""The messages of hot reload to an agent: sentences for the model, and a state for programs. Pure.

Each says whether the call was run, and what to do next. The state is in `_meta` under META_KEY, so that no program has
to parse a sentence.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any

from ...system.values import Value
from ..health.upstream_issues import TRY_AGAIN
from ..own_tools import HEALTH, STATUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...hotreload.authority import Restarted
    from ...protocol.service import Result


META_KEY = "uno-devserver/hotReload"
QUOTED_CHARACTERS = 300  # of a line that is quoted in a sentence

_WAIT = f"Call {STATUS} with an empty input; it waits for the server. Retry no other tool before it says ready."
_NOT_RUN = "This call has not been run."


class State(Enum):
    READY = "ready"  # of mcpStatus, whether or not code was reloaded before
    RESTARTING = "restarting"
    BUILD_FAILED = "buildFailed"
    RELOADED = "reloaded"
    SWAPPED = "swapped"
    SWAP_FAILED = "swapFailed"  # the old server still answers
    FAILED = "failed"  # none answers
    EXTENSION_RELOADED = "extensionReloaded"
    EXTENSION_BUILD_FAILED = "extensionBuildFailed"


class Note(Value):
    state: State
    text: str = ""  # empty: only for programs


def not_run(notes: Sequence[Note]) -> Result:
    """The answer to a call that was not run."""
    return _result("\n\n".join(note.text for note in notes), notes, run=False)


def state_of(notes: Sequence[Note], *, run: bool) -> dict[str, Any]:
    """The value in `_meta`; the first note is the most important."""
    first, *others = notes
    state: dict[str, Any] = {"state": first.state.value, "run": run}
    if others:
        state["also"] = [note.state.value for note in others]
    return state


def _result(text: str, notes: Sequence[Note], *, run: bool) -> Result:
    return {
        "content": [{"type": "text", "text": text}],
        "isError": not run,
        "_meta": {META_KEY: state_of(notes, run=run)},
    }


# Instead of running a call.


def restarting(name: str) -> Note:
    text = f"The code of {name} has changed, and {name} now restarts with it. {_NOT_RUN} {_WAIT}"
    return Note(State.RESTARTING, text)


def queued(name: str) -> Note:
    """For the calls behind the one that noticed the change, and those that come during the restart."""
    return Note(State.RESTARTING, f"{_first(name)} is restarting with new code. {_NOT_RUN} {_WAIT}")


def build_failed(name: str, output: str, *, serves: bool) -> Note:
    """`serves`: older code answers."""
    stays = "was not restarted; its old code still answers" if serves else "does not run"
    text = (
        f"The code of {name} has changed, and its build failed:\n\n{fenced(output)}\n\n"
        f"{_NOT_RUN} {_first(name)} {stays}. "
        "Fix what the build complains of, then call the tool again: that builds anew."
    )
    return Note(State.BUILD_FAILED, text)


# With the result of a call that was run.


def still_not_built(name: str) -> Note:
    """Says "may": some compilers write their output in spite of errors."""
    text = (
        f"Note: the build of the present code of {name} still fails; fix it, and the next call builds again. "
        "Until then results may come from older code."
    )
    return Note(State.BUILD_FAILED, text)


def still_not_started(name: str) -> Note:
    text = (
        f"Note: the old code of {name} gave this result. Its present code did not start; "
        "fix it, and the next call starts it anew."
    )
    return Note(State.SWAP_FAILED, text)


def extension_updated(*, client_reloaded: bool, client_problem: str | None = None) -> Note:
    client = ""  # there is none, or a person has closed it
    if client_reloaded:
        client = ", and its client was restarted with it"
    elif client_problem:
        client = f", but its client is not ready: {client_problem.rstrip('.')}"
    return Note(State.EXTENSION_RELOADED, f"Note: the extension's code has changed. It was rebuilt{client}.")


def extension_failed(output: str | None) -> Note:
    """None: the output is the same as the last time."""
    if output is None:
        what = "the build of the extension's code still fails, as before. "
    else:
        what = f"the extension's code has changed, and its build failed:\n\n{fenced(output)}\n\n"
    text = (
        f"Note: {what}Fix the error; the next call builds again. Until then what runs of it may be older than its code."
    )
    return Note(State.EXTENSION_BUILD_FAILED, text)


def not_replaced(name: str, restarted: Restarted) -> Note:
    """The new code did not start."""
    sentences = [f"Note: {name} did not start with its new code."]
    if restarted.problem:
        sentences.append(restarted.problem)
    if restarted.kept:
        sentences.append("Its old code still answers.")
    sentences.append("Fix the code; the next call after that starts it anew.")
    text = " ".join(sentences) + _last_lines(restarted.last_lines)
    return Note(State.SWAP_FAILED if restarted.kept else State.FAILED, text)


def reloaded_in_part(name: str, problem: str) -> Note:
    text = f"Note: {name} runs its new code, but not all of it. {problem} Mend and save it; that loads it anew."
    return Note(State.RELOADED, text)


# The results of mcpStatus.


def ready(
    name: str,
    *,
    log_file: str | None,
    source: str | None,
    failing: tuple[State, str] | None = None,
    missing: Sequence[str] = (),
    extension_error: str | None = None,
) -> Result:
    """`failing`: how and why the code on disk does not answer. `missing`: sentences about parts that do not work.
    `extension_error`: what the failed build of the extension printed.
    """
    steps = [f"Call {HEALTH}, which says what is wrong"]
    if log_file:
        steps.append(f"Look into its log, {log_file}")
    steps.append(f"Read its source{f' in {source}' if source else ''}")
    problems, states = list(missing), [State.READY]
    if failing:
        problems.append(_older(*failing))
        states.append(failing[0])
    if extension_error is not None:
        why = _because(extension_error)
        problems.append(f"The build of the extension's code fails{why}; the next call builds it again.")
        states.append(State.EXTENSION_BUILD_FAILED)
    is_ready = " ".join([f"{_first(name)} is ready.", *problems])
    text = (
        f"{is_ready} Do not call {STATUS} again; go on with its tools.\n\n"
        "If tools are missing, or it does not do what its code says:\n"
        + "\n".join(f"{number}. {step}." for number, step in enumerate(steps, 1))
    )
    return _status(text, *states, is_ready=True)


def _older(state: State, why: str) -> str:
    what = "its build fails" if state is State.BUILD_FAILED else "it did not start"
    return (
        f"But what answers may be older than its present code: {what}{_because(why)}. "
        "Fix that; the next call of a tool tries again."
    )


def _because(output: str) -> str:
    """One line of the output in brackets: the first that mentions an error, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    line = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
    return f" ({line[:QUOTED_CHARACTERS].rstrip('.')})" if line else ""


def still_restarting(name: str, seconds: float, *, waits_for: str) -> Result:
    text = (
        f"{_first(name)} is not ready after {seconds:g} s: {waits_for}. Call {STATUS} once more to wait on; if that "
        f"does not help either, call {HEALTH}, which says what is wrong."
    )
    return _status(text, State.RESTARTING, is_ready=False)


def not_built(name: str, output: str) -> Result:
    text = (
        f"{_first(name)} does not run, and the build of its code fails:\n\n{fenced(output)}\n\n"
        f"Fix what the build complains of, then call {STATUS} or one of its tools: that builds and starts it anew."
    )
    return _status(text, State.FAILED, State.BUILD_FAILED, is_ready=False)


def not_started(name: str, reasons: Sequence[str], steps: Sequence[str], lines: Sequence[str]) -> Result:
    """`reasons` and `steps` are those of the health report."""
    why = " ".join([f"{_first(name)} does not run.", *reasons])
    what = " ".join(step.replace(TRY_AGAIN, "Repair it.") for step in steps or ["Fix its code."])
    quoted = bool(lines) and lines[-1] in why
    text = (
        f"{why}{'' if quoted else _last_lines(lines)}\n\n"
        f"{what} Then call one of its tools: that builds and starts it anew. {HEALTH} tells more."
    )
    return _status(text, State.FAILED, is_ready=False)


def _status(text: str, *states: State, is_ready: bool) -> Result:
    return _result(text, [Note(state) for state in states], run=is_ready)


def _first(name: str) -> str:
    """As the first word of a sentence."""
    return name[:1].upper() + name[1:]


def fenced(output: str) -> str:
    """As a block of Markdown that nothing inside it can end."""
    longest = max((len(ticks) for ticks in re.findall("`+", output)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{output.rstrip()}\n{fence}"


def _last_lines(lines: Sequence[str]) -> str:
    return "\n\nIt printed last:\n\n" + fenced("\n".join(lines)) if lines else ""
