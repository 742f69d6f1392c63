"""The messages of hot reload to an agent: sentences for the model, and a state for programs.

Each says whether the call was run, and what to do next. The state is in `_meta` under META_KEY, so that no program has
to parse a sentence. `ResultNotes` appends notes to tool results: a text after the content, and a member of `_meta`.
The upstream's result is not changed otherwise: only the result object, `content` and `_meta` are decoded, one level
each.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ...protocol.jsonrpc import shown
from ...system.values import Value
from ...workspace.trust import not_reloaded
from ..own_tools import STATUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...hotreload.authority import CheckResult, RestartResult
    from ...protocol.service import Result


OWN_PREFIX = "uno-devserver/"  # of the members of `_meta` that only the proxy may write
META_KEY = f"{OWN_PREFIX}hotReload"
QUOTED_CHARACTERS = 300  # of a line, when a sentence quotes it

_WAIT = f"Call {STATUS} with an empty input; it waits for the server. Retry no other tool before it says ready."
_NOT_RUN = "This call has not been run."
UNCHECKED_TEXT = "whether the code of {} has changed could not be checked; the proxy's log says why"
_RESTARTED = "restarted; what the old process had in memory is gone."

_LEVELS: dict[type, msgspec.json.Decoder[Any]] = {
    dict: msgspec.json.Decoder(dict[str, msgspec.Raw]),
    list: msgspec.json.Decoder(list[msgspec.Raw]),
    str: msgspec.json.Decoder(str),
}

_NULL = msgspec.Raw(b"null")
T = TypeVar("T")


class ReloadState(Enum):
    READY = "ready"  # only from mcpStatus, whether or not code was reloaded before
    RESTARTING = "restarting"
    BUILD_FAILED = "buildFailed"
    RELOADED = "reloaded"
    SWAPPED = "swapped"
    SWAP_FAILED = "swapFailed"  # the old server still answers
    FAILED = "failed"  # no server answers
    EXTENSION_RELOADED = "extensionReloaded"
    EXTENSION_BUILD_FAILED = "extensionBuildFailed"
    OLD_OUTPUT = "oldOutput"  # what is started was not built again after its code had changed
    NOT_AGREED = "notAgreed"  # the config or the kinds of code have changed, and the user has not agreed
    TOOL_GONE = "toolGone"  # a reload has removed the tool that was called
    UNCHECKED = "unchecked"  # whether the code has changed could not be checked


class ReloadNote(Value):
    state: ReloadState
    text: str = ""  # empty if the note is only for programs
    remark: str = ""  # what mcpStatus says in place of the text, if it may


def not_run(notes: Sequence[ReloadNote]) -> Result:
    """Make the answer to a call that was not run."""
    return noted_result("\n\n".join(note.text for note in notes), notes, run=False)


def state_of(notes: Sequence[ReloadNote], *, run: bool) -> dict[str, Any]:
    """Make the value in `_meta`, from at least one note, the most important one first."""
    first, *others = dict.fromkeys(note.state.value for note in notes)
    state: dict[str, Any] = {"state": first, "run": run}
    if others:
        state["also"] = others
    return state


def noted_result(text: str, notes: Sequence[ReloadNote], *, run: bool) -> Result:
    return {
        "content": [{"type": "text", "text": text}],
        "isError": not run,
        "_meta": {META_KEY: state_of(notes, run=run)},
    }


# Notes for a call that is not run.


def restarting(name: str, stale_reason: str | None = None) -> ReloadNote:
    """`stale_reason`: sentences, if what is started was not built from the present code."""
    how = f"restarts, but perhaps without it: {stale_reason}" if stale_reason else "now restarts with it."
    why = f"The code of {name} has changed, and {name} {how}"
    return ReloadNote(ReloadState.RESTARTING, f"{why} {_NOT_RUN} {_WAIT}")


def queued(name: str) -> ReloadNote:
    """Make the note for calls that wait or come during a restart that another call has caused."""
    return ReloadNote(ReloadState.RESTARTING, f"{capitalised(name)} is restarting with new code. {_NOT_RUN} {_WAIT}")


def build_failed(name: str, output: str, *, serves: bool, of_failed_build: bool = False) -> ReloadNote:
    """Make the note that the build or the syntax check failed; `serves`: whether a server answers, with older code
    unless it was started after a build that had failed.
    """
    changed, stays = "", "does not run"
    if serves and of_failed_build:
        stays = "was started after a build that had failed, and runs what that has written, or older code"
    elif serves:
        changed, stays = "has changed, and ", "was not restarted; its old code still answers"
    return ReloadNote(
        ReloadState.BUILD_FAILED,
        f"The code of {name} {changed}cannot be used:\n\n{fenced(output)}\n\n"
        f"{_NOT_RUN} {capitalised(name)} {stays}. "
        f"Fix that, then call the tool again. Without a change of the code, {STATUS} tries again.",
    )


# Notes for the result of a call that was run.


def still_not_built(name: str, *, of_failed_build: bool) -> ReloadNote:
    """Make a note that says "may": some compilers write their output in spite of errors, and the next start runs it."""
    source = "what the failed build has written, as it was started after it" if of_failed_build else "older code"
    return ReloadNote(
        ReloadState.BUILD_FAILED,
        f"Note: the present code of {name} still cannot be used; fix it, and the next call tries again. "
        f"Until then results may come from {source}.",
    )


def still_not_started(name: str) -> ReloadNote:
    why = "Its present code did not start; fix it, and the next call starts it again."
    return _of_old_code(ReloadState.SWAP_FAILED, name, why)


def before_restart(name: str) -> ReloadNote:
    """Make the note for the result of a call for which the restart waits, because another call may depend on it."""
    why = f"Its code has changed; {name} restarts with it when the call that waits for an answer of its client is over."
    return _of_old_code(ReloadState.RESTARTING, name, why)


def old_output(name: str, why: str) -> ReloadNote:
    return ReloadNote(ReloadState.OLD_OUTPUT, f"Note: this result may come from older code of {name}: {why}")


def _of_old_code(state: ReloadState, name: str, why: str) -> ReloadNote:
    return ReloadNote(state, f"Note: the old code of {name} gave this result. {why}")


def not_agreed(why: str) -> ReloadNote:
    """`why`: the end of a sentence."""
    return ReloadNote(ReloadState.NOT_AGREED, f"Note: {not_reloaded(why)}")


def unchecked(name: str) -> ReloadNote:
    return ReloadNote(ReloadState.UNCHECKED, f"Note: {capitalised(UNCHECKED_TEXT.format(name))}.")


def memory_lost(name: str, *, swapped: bool) -> ReloadNote:
    """Make the note for the first result after a reload."""
    state = ReloadState.SWAPPED if swapped else ReloadState.RELOADED
    return ReloadNote(state, f"Note: {name} was {_RESTARTED}", remark=f"It was {_RESTARTED}")


def tool_gone(name: str, tool: str, new_name: str | None) -> ReloadNote:
    now = f"'{shown(new_name)}' is probably its new name" if new_name else "list the tools again"
    return ReloadNote(
        ReloadState.TOOL_GONE, f"Note: {name} has no tool '{shown(tool)}' any more since its code was reloaded; {now}."
    )


def extension_updated(*, client_reloaded: bool, client_problem: str | None = None) -> ReloadNote:
    client = ""  # there is no client, or a person has closed it
    if client_reloaded:
        client = ", and its client was restarted with it"
    elif client_problem:
        client = f", but its client is not ready: {client_problem.rstrip('.')}"
    return ReloadNote(
        ReloadState.EXTENSION_RELOADED, f"Note: the extension's code has changed. It was rebuilt{client}."
    )


def extension_failed(output: str | None) -> ReloadNote:
    """Make the note that the extension's build failed; `output` is None if it is the same as the last time."""
    what = "the build of the extension's code still fails, as before. "
    if output is not None:
        what = f"the extension's code has changed, and its build failed:\n\n{fenced(output)}\n\n"
    return ReloadNote(
        ReloadState.EXTENSION_BUILD_FAILED,
        f"Note: {what}Fix the error; the next call builds again. "
        "Until then what runs of it may be older than its code.",
    )


def not_replaced(name: str, restarted: RestartResult) -> ReloadNote:
    """Make the note that the new code did not start."""
    sentences = [
        f"Note: {name} did not start with its new code.",
        restarted.problem,
        "Its old code still answers." if restarted.kept else "",
        "Fix the code; the next call after that starts it again.",
    ]
    text = " ".join(filter(None, sentences)) + printed_last(restarted.last_lines)
    return ReloadNote(ReloadState.SWAP_FAILED if restarted.kept else ReloadState.FAILED, text)


def reloaded_in_part(name: str, problem: str) -> ReloadNote:
    text = f"Note: {name} runs its new code, but not all of it. {problem} Fix and save it; that loads it again."
    return ReloadNote(ReloadState.RELOADED, text)


def capitalised(name: str) -> str:
    """Capitalise a name that begins a sentence."""
    return name[:1].upper() + name[1:]


def fenced(output: str) -> str:
    """Return the output as a block of Markdown that nothing inside it can end."""
    longest = max((len(ticks) for ticks in re.findall("`+", output)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{output.rstrip()}\n{fence}"


def printed_last(lines: Sequence[str]) -> str:
    return "\n\nIt printed last:\n\n" + fenced("\n".join(lines)) if lines else ""


class ResultNotes:
    """The notes that the next results must carry.

    Each is added in full once, to the next result that has room for it; while the failure lasts, every result of the
    old code gets a sentence about it.
    """

    def __init__(self) -> None:
        self.failure: ReloadNote | None = None  # for every result, while the new code cannot be built or started
        self.reason = ""  # the output of the failed build, or why the new code did not start
        self.pending: list[ReloadNote] = []  # for the next result
        self.extension_error: str | None = None  # the output of the extension's last build, if it failed
        self._reported: str | None = None  # the failed build that was last reported in full

    @property
    def build_fails(self) -> bool:
        return self.failure is not None and self.failure.state is ReloadState.BUILD_FAILED

    @property
    def failing(self) -> tuple[ReloadState, str] | None:
        """How and why the code on disk could not be built or started; None if it could."""
        return (self.failure.state, self.reason) if self.failure is not None else None

    def code_built(self) -> None:
        """Record that the newest code is built."""
        self.failure = self._reported = None

    def code_runs(self) -> None:
        """Record that the code on disk is the code that runs."""
        self.code_built()
        self._drop_failed_start()

    def build_failed(self, name: str, result: CheckResult, output: str, *, reports: bool) -> bool:
        """Record a failed build; return whether to report it in full: once per content, and only with `reports`."""
        self.failure = still_not_built(name, of_failed_build=result.server_of_failed_build)
        self.reason = output
        content = result.server_digest or output
        if content == self._reported or not reports:
            return False
        self._reported = content
        return True

    def not_started(self, name: str, *, serves: bool) -> None:
        """Record that the code on disk did not start; `serves`: whether older code answers."""
        self.reason = "" if self.build_fails else self.reason  # the output of an earlier build is not why
        self.failure = still_not_started(name) if serves else None
        self._reported = None

    def restart_begins(self) -> None:
        """Drop the notes that an earlier restart succeeded."""
        reloads = (ReloadState.RELOADED, ReloadState.SWAPPED)
        self.pending = [note for note in self.pending if note.state not in reloads]

    def restarted(self, name: str, outcome: RestartResult, *, swapped: bool = False, lost_memory: bool = False) -> None:
        """Record the outcome of a restart; `lost_memory`: whether an earlier process had answered."""
        self._drop_failed_start()
        self.restart_begins()
        if outcome.refusal:
            self.not_agreed(outcome.refusal)
            return
        if not outcome.ok:
            self.pending.append(not_replaced(name, outcome))
            self.failure = still_not_started(name) if outcome.kept else None
            self.reason = outcome.problem
            return
        if outcome.problem:
            self.pending.append(reloaded_in_part(name, outcome.problem))
        if lost_memory:
            self.pending.append(memory_lost(name, swapped=swapped))

    def take_remark(self) -> str:
        """Return the sentence that a reload has lost the server's memory, if it is still to be said."""
        remark = next((note.remark for note in self.pending if note.remark), "")
        self.pending = [note for note in self.pending if not note.remark]
        return remark

    def not_built_again(self, name: str, why: str) -> None:
        """Record that what is started was not built after its code had changed; `why` are sentences."""
        self.failure, self.reason = old_output(name, why), why

    def not_agreed(self, why: str) -> None:
        """Record that the user has not agreed to the present config or code; `why` is the end of a sentence."""
        self.failure, self.reason = not_agreed(why), why

    def extension_notes(self, result: CheckResult) -> list[ReloadNote]:
        output, before = result.extension_build_error, self.extension_error
        self.extension_error = output
        if output is not None:
            return [extension_failed(output if output != before else None)]
        if result.extension_rebuilt:
            reloaded, problem = result.client_reloaded, result.client_problem
            return [extension_updated(client_reloaded=reloaded, client_problem=problem)]
        return []

    def attach(
        self,
        result: Result | msgspec.Raw,
        own: list[ReloadNote],
        *,
        run: bool,
        tells_failed_start: bool = False,
        tells_loss: bool = False,
    ) -> Result | msgspec.Raw:
        """Add the call's own notes and the pending ones to the result; return it unchanged if it has no room for them.

        `tells_failed_start`: the result already says why no server answers, so the notes do not repeat it.
        `tells_loss`: it says that the server was lost, so the next one says that its memory is gone.
        """
        later = [note for note in self.pending if tells_loss and note.remark]
        self.pending = [note for note in self.pending if note not in later]
        if tells_failed_start:
            failed = ReloadState.FAILED
            self.pending = [note.replace(text="") if note.state is failed else note for note in self.pending]
        in_full = {note.state for note in self.pending}
        notes = [*(note for note in own if note.state not in in_full), *self.pending]
        noted = with_notes(result, notes, run=run) if notes else None
        self.pending = later if noted is not None else [*self.pending, *later]
        return result if noted is None else noted

    def _drop_failed_start(self) -> None:
        dropped = (ReloadState.SWAP_FAILED, ReloadState.FAILED)
        self.pending = [note for note in self.pending if note.state not in dropped]


def with_notes(result: Result | msgspec.Raw, notes: Sequence[ReloadNote], *, run: bool = True) -> Result | None:
    """The result with the notes; None if it has no room for them: it is ill-formed, or does not end the call."""
    opened = _opened(result, dict)
    kind = opened.get("resultType") if opened is not None else None
    # A modern server may ask a question first; older servers have no result type.
    if opened is None or (kind is not None and _opened(kind, str) != "complete"):
        return None
    members = {name: value for name, value in opened.items() if value not in (None, _NULL)}
    content, meta = _opened(members.get("content", []), list), _opened(members.get("_meta", {}), dict)
    if content is None or meta is None:
        return None
    texts = [{"type": "text", "text": note.text} for note in notes if note.text]
    return {**opened, "content": [*content, *texts], "_meta": {**meta, META_KEY: state_of(notes, run=run)}}


def without_forged_state(result: Result | msgspec.Raw) -> Result | msgspec.Raw:
    """The upstream's result without the members of `_meta` by which the proxy tells programs what it has done.

    Decoded, because JSON has many spellings of a name, and may have it twice. Ordinary calls of a client on stdio are
    relayed as they are.
    """
    opened = _opened(result, dict)
    if opened is None or "_meta" not in opened:
        return result
    meta = _opened(opened["_meta"], dict)
    if meta is None:
        return opened
    return {**opened, "_meta": {key: value for key, value in meta.items() if not key.startswith(OWN_PREFIX)}}


def _opened(value: object, kind: type[T]) -> T | None:
    """The value with its outermost level decoded; None if it is not of this type."""
    if isinstance(value, msgspec.Raw):
        encoded, decoder = bytes(value), _LEVELS[kind]
        try:
            try:
                value = decoder.decode(encoded)
            except UnicodeDecodeError:  # in a name; clients may repair it, so our own members must be found
                value = decoder.decode(encoded.decode("utf-8", "replace"))
        except msgspec.DecodeError:
            return None
    return value if isinstance(value, kind) else None
