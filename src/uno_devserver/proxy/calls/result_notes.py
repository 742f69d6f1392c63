"""Notes about reloads that are appended to tool results: a text behind the content, and a member of `_meta`.

`ResultNotes` knows which notes are due: that new code could not be built or started, and what became of the extension.
Each is told in full once, with the next result that has room for it; while the failure lasts, every result of the old
code says so in a sentence. Pure. What the upstream wrote stays as it was; only its outermost level is decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from . import reload_messages as messages
from .reload_messages import META_KEY, Note, State, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...hotreload.authority import CheckResult, Restarted
    from ...protocol.service import Result


_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode


class ResultNotes:
    def __init__(self) -> None:
        self.failure: Note | None = None  # for every result, while the new code cannot be built or started
        self.reason = ""  # what the failed build printed, or why the new code did not start
        self.pending: list[Note] = []  # for the next result
        self.extension_error: str | None = None  # of the last build of the extension
        self._reported: str | None = None  # the failed build that an agent was told of last

    @property
    def build_fails(self) -> bool:
        return self.failure is not None and self.failure.state is State.BUILD_FAILED

    @property
    def failing(self) -> tuple[State, str] | None:
        """How and why the code on disk could not be built or started, so that older code answers."""
        return (self.failure.state, self.reason) if self.failure is not None else None

    def code_built(self) -> None:
        """The newest code is ready to be started."""
        self.failure = self._reported = None

    def code_runs(self) -> None:
        """The code on disk is the code that runs."""
        self.code_built()
        self._drop_failed_start()

    def build_failed(self, name: str, result: CheckResult, output: str) -> bool:
        """Whether no agent has been told in full how this content fails; see `build_failure_reported`."""
        self.failure, self.reason = messages.still_not_built(name), output
        return _failure_key(result, output) != self._reported

    def build_failure_reported(self, result: CheckResult, output: str) -> None:
        self._reported = _failure_key(result, output)

    def not_started(self, name: str, *, serves: bool) -> None:
        """The code on disk did not start; `serves`: older code answers."""
        self.reason = "" if self.build_fails else self.reason
        self.failure = messages.still_not_started(name) if serves else None
        self._reported = None

    def restart_begins(self) -> None:
        self.pending = [note for note in self.pending if note.state is not State.RELOADED]  # of the restart before

    def restarted(self, name: str, outcome: Restarted) -> None:
        self._drop_failed_start()
        if not outcome.ok:
            self.pending.append(messages.not_replaced(name, outcome))
            self.failure = messages.still_not_started(name) if outcome.kept else None
            self.reason = outcome.problem
        elif outcome.problem:
            self.pending.append(messages.reloaded_in_part(name, outcome.problem))

    def extension_notes(self, result: CheckResult) -> list[Note]:
        output, before = result.extension_build_error, self.extension_error
        self.extension_error = output
        if output is not None:
            return [messages.extension_failed(output if output != before else None)]
        if result.extension_rebuilt:
            reloaded, problem = result.client_reloaded, result.client_problem
            return [messages.extension_updated(client_reloaded=reloaded, client_problem=problem)]
        return []

    def attach(
        self, result: Result | msgspec.Raw, own: list[Note], *, run: bool, tells_failed_start: bool = False
    ) -> Result | msgspec.Raw:
        """The result with its own notes and those that are pending; unchanged if it has no room for them.

        `tells_failed_start`: the result says itself why no server answers, so that text is not repeated.
        """
        if tells_failed_start:
            self.pending = [note.replace(text="") if note.state is State.FAILED else note for note in self.pending]
        in_full = {note.state for note in self.pending}
        notes = [*(note for note in own if note.state not in in_full), *self.pending]
        noted = with_notes(result, notes, run=run) if notes else None
        if noted is None:
            return result
        self.pending.clear()
        return noted

    def _drop_failed_start(self) -> None:
        self.pending = [note for note in self.pending if note.state not in (State.SWAP_FAILED, State.FAILED)]


def _failure_key(result: CheckResult, output: str) -> str:
    return result.server_digest or output


def with_notes(result: Result | msgspec.Raw, notes: Sequence[Note], *, run: bool = True) -> Result | None:
    """The result with these notes; None if it has no room for them: it is no object, or not the end of the call."""
    opened = _members(result)
    if opened is None or not _is_complete(opened.get("resultType")):
        return None
    content = _list(opened.get("content", []))
    meta = _members(opened.get("_meta", {}))
    if content is None or meta is None:
        return None
    texts = [{"type": "text", "text": note.text} for note in notes if note.text]
    return {
        **opened,
        "content": [*content, *texts],
        "_meta": {**meta, META_KEY: state_of(notes, run=run)},
    }


def _is_complete(kind: object) -> bool:
    """A modern server may ask something first; older ones have no result type."""
    return kind is None or (_text(kind) if isinstance(kind, msgspec.Raw) else kind) == "complete"


def _members(value: object) -> dict[str, Any] | None:
    if isinstance(value, msgspec.Raw):
        return _object(value) if _first(value) == b"{" else None
    return dict(value) if isinstance(value, dict) else None


def _list(value: object) -> list[Any] | None:
    if isinstance(value, msgspec.Raw):
        return _array(value) if _first(value) == b"[" else None
    return list(value) if isinstance(value, list) else None


def _first(raw: msgspec.Raw) -> bytes:
    return bytes(memoryview(raw)).lstrip()[:1]
