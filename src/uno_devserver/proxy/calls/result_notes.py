"""A note of ours in the result of a tool: a text behind its content, and a member of its `_meta`. Pure.

What the upstream wrote stays as it was; only the outermost level is opened.

What results have to tell besides: that new code could not be built or started, and what became of the extension.

Each thing is told whole once, with the next result that has room for it; while it lasts, all results of the code before
say so in a sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from . import reload_messages as messages
from .reload_messages import META_KEY, Note, State, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec

    from ...hotreload.authority import CheckResult, Restarted
    from ...protocol.service import Result


_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode


def noted(result: Result | msgspec.Raw, notes: Sequence[Note], *, run: bool = True) -> Result | msgspec.Raw | None:
    """With these notes in it; None where there is no place for them: it is no object, or not the end of the call."""
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
    """A modern server may ask something first; older ones say nothing about it."""
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


class ResultNotes:
    def __init__(self) -> None:
        self.lasting: Note | None = None  # while the new code cannot be built or started: for all results of the old
        self.why = ""  # what the build printed, or why it did not start
        self.next: list[Note] = []  # for the next result
        self._shown: str | None = None  # the failed build that an agent was shown last
        self.extension_error: str | None = None  # of the last build of the extension

    @property
    def not_built(self) -> bool:
        return self.lasting is not None and self.lasting.state is State.BUILD_FAILED

    def ready(self) -> None:
        """The newest code is ready to be started."""
        self.lasting = self._shown = None

    def build_failed(self, name: str, result: CheckResult, output: str) -> bool:
        """Whether that is news: no agent was shown how this content fails, which `shown` is to be told."""
        self.lasting, self.why = messages.still_not_built(name), output
        return _failure(result, output) != self._shown

    def shown(self, result: CheckResult, output: str) -> None:
        self._shown = _failure(result, output)

    def not_started(self, name: str, *, serves: bool) -> None:
        """The content that lies there did not start; `serves`: another one does."""
        self.why = "" if self.not_built else self.why
        self.lasting = messages.still_not_started(name) if serves else None
        self._shown = None

    def current(self) -> None:
        """What lies there is what runs."""
        self.ready()
        self._forget_failed_start()

    def restarted(self, name: str, outcome: Restarted) -> None:
        self._forget_failed_start()
        if not outcome.ok:
            self.next.append(messages.not_replaced(name, outcome))
            self.lasting = messages.still_not_started(name) if outcome.kept else None
            self.why = outcome.problem
        elif outcome.problem:
            self.next.append(messages.reloaded_in_part(name, outcome.problem))

    def failed_start_told(self) -> None:
        """The next result says by itself that none answers, and why."""
        self.next = [note.replace(text="") if note.state is State.FAILED else note for note in self.next]

    def restart_begins(self) -> None:
        self.next = [note for note in self.next if note.state is not State.RELOADED]  # of the restart before

    def of_extension(self, result: CheckResult) -> list[Note]:
        output, before = result.extension_build_error, self.extension_error
        self.extension_error = output
        if output is not None:
            return [messages.extension_failed(output if output != before else None)]
        if result.extension_rebuilt:
            reloaded, problem = result.client_reloaded, result.client_problem
            return [messages.extension_updated(client_reloaded=reloaded, client_problem=problem)]
        return []

    def put_on(self, result: Result | msgspec.Raw, own: list[Note], *, run: bool) -> Result | msgspec.Raw:
        """The result with what is to be told, and with its own notes; as it was, if it has no room for them."""
        told_whole = {note.state for note in self.next}
        notes = [*(note for note in own if note.state not in told_whole), *self.next]
        carrying = noted(result, notes, run=run) if notes else None
        if carrying is None:
            return result
        self.next.clear()
        return carrying

    def _forget_failed_start(self) -> None:
        """What it has left to say is of no interest any more."""
        self.next = [note for note in self.next if note.state not in (State.SWAP_FAILED, State.FAILED)]


def _failure(result: CheckResult, output: str) -> str:
    return result.server_digest or output
