"""What a client sends and what it takes: the rules for Content-Type and Accept."""

from __future__ import annotations

from collections.abc import Mapping

from ..system.values import Value

JSON = "application/json"


class Accepts(Value):
    json: bool
    events: bool


def accepted(headers: Mapping[str, str]) -> Accepts:
    """The kinds of answer that the client takes. One that does not say takes both."""
    listed = headers.get("accept")
    if listed is None:
        return Accepts(json=True, events=True)
    kinds = {kind.partition(";")[0].strip().lower() for kind in listed.split(",")}
    return Accepts(
        json=not kinds.isdisjoint({JSON, "application/*", "*/*"}),
        events=not kinds.isdisjoint({"text/event-stream", "text/*", "*/*"}),
    )


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether the body says that it is JSON. Absent does not count: a web page can send that without asking us."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == JSON
