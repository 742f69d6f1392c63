"""A note of ours in the result of a tool: a text behind its content, and a member of its `_meta`. Pure.

What the upstream wrote stays as it was; only the outermost level is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from .reload_messages import META_KEY, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...protocol.service import Result
    from .reload_messages import Note

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
