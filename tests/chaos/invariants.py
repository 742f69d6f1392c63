"""What must hold whatever is broken, as checks without I/O: they are told what happened, and say what may not be.

conversation.asks(request); conversation.hears(line)     # between one client and its proxy
broken_in_ledger(outcomes, entries)                      # between all answers and what the servers ran
strange_files(names)                                     # what is left
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from chaos.upstreams.tools import EFFECTIVE

ONE_ANSWER = "every request has one answer"
NO_OTHER_ANSWER = "no answer without a request"
VALID_LINES = "every line of a proxy is a message"
RUN_ONCE = "no call with an effect runs twice"
TRUE_ANSWERS = "what an answer says of its call is true"
PROXY_STAYS = "a proxy ends only with its client"
PROXY_GOES = "a proxy ends with its client"
NO_TRACEBACK = "no proxy prints a traceback"
RECOVERS = "Connected, and a call works, when the faults stop"
NEW_CODE = "a call after an edit runs on the new code"
PAGE_EVENTS = "every event of the page is JSON"
NO_TOKENS = "no token is in a log or an answer"
NOTHING_LEFT = "no process, port, socket or temporary file is left"
INVARIANTS = (
    ONE_ANSWER,
    NO_OTHER_ANSWER,
    VALID_LINES,
    RUN_ONCE,
    TRUE_ANSWERS,
    PROXY_STAYS,
    PROXY_GOES,
    NO_TRACEBACK,
    RECOVERS,
    NEW_CODE,
    PAGE_EVENTS,
    NO_TOKENS,
    NOTHING_LEFT,
)

# Longer than anything that the proxy may wait for while every fault is over within seconds; a client gives up before.
ANSWER_SECONDS = 150.0

NOT_RUN = "This request has not been run."
RELOAD_META = "uno-devserver/hotReload"

# Everything that the program keeps in its folder (docs/architecture.md has the list), below the data folder.
KNOWN_FILES = re.compile(
    r"uno\.devserver/("
    r"logs/[^/]+\.log|ports/[^/]+\.json|locks/[^/]+\.lock|catalogue/[^/]+\.json|proxies/\d+\.json|hotreload/[^/]+\.json"
    r"|addins/[^/]+\.json|inspector/[0-9a-f]{64}|trust/[^/]+\.json|sign-ins/[^/]+\.(json|lock)|dotnet-version-cache\.json"
    r")|DevServers/devserver-\d+(\.aux)?\.json"
)


@dataclass(frozen=True)
class Broken:
    """An invariant that does not hold, and what shows it."""

    invariant: str
    text: str


class Verdict(Enum):
    """What an answer says of its call."""

    DONE = "done"
    NOT_RUN = "not run"
    UNKNOWN = "unknown"  # it may have run
    ERROR = "error"


@dataclass(frozen=True)
class Outcome:
    key: str
    tool: str
    verdict: Verdict


@dataclass
class Request:
    id: int
    method: str
    at: float
    key: str = ""
    tool: str = ""
    cancelled: bool = False
    answer: Mapping[str, Any] | None = None


@dataclass
class Conversation:
    """One client and one proxy: what was asked, and whether it was answered as it should be."""

    name: str
    broken: list[Broken] = field(default_factory=list)
    waiting: dict[int, Request] = field(default_factory=dict)
    _answered: set[int] = field(default_factory=set)
    _may_be_nobodys: int = 0  # lines that were sent and are no messages: each may have one error without an id

    def asks(self, request: Request) -> None:
        self.waiting[request.id] = request

    def cancels(self, request_id: int) -> None:
        """Note that a request was cancelled: it may stay without an answer, but has one at most."""
        if request_id in self.waiting:
            self.waiting[request_id].cancelled = True

    @property
    def under_way(self) -> int:
        return sum(not each.cancelled for each in list(self.waiting.values()))

    def errs(self) -> None:
        self._may_be_nobodys += 1

    def hears(self, line: bytes) -> tuple[Request | None, dict[str, Any]]:
        """The message of a line (empty where it is none), and the request that it answers."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not is_message(message):
            self.broken.append(Broken(VALID_LINES, f"{self.name}: {line[:300]!r}"))
            return None, {}
        if "method" in message:
            return None, message
        answered = message.get("id")
        request = self.waiting.pop(answered, None) if isinstance(answered, int) else None
        if request is not None:
            self._answered.add(request.id)
        elif answered is None and self._may_be_nobodys:
            self._may_be_nobodys -= 1
        elif isinstance(answered, int) and answered in self._answered:
            self.broken.append(Broken(ONE_ANSWER, f"{self.name}: a second answer to {answered}: {line[:600]!r}"))
        else:
            self.broken.append(Broken(NO_OTHER_ANSWER, f"{self.name}: no request for {line[:600]!r}"))
        return request, message

    def awaits_any_from_before(self, moment: float) -> bool:
        return any(not each.cancelled and each.at < moment for each in list(self.waiting.values()))

    def overdue(self, now: float) -> list[Broken]:
        late = [each for each in list(self.waiting.values()) if not each.cancelled and now - each.at > ANSWER_SECONDS]
        return [
            Broken(ONE_ANSWER, f"{self.name}: none after {now - each.at:.0f} s to {each.method} {each.tool} {each.key}")
            for each in late
        ]


def is_message(message: object) -> bool:
    """Whether it is a request, a notification or an answer of JSON-RPC 2.0."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    if isinstance(message.get("method"), str):
        return "result" not in message and "error" not in message
    return "id" in message and ("result" in message) != ("error" in message)


def outcome_of(request: Request, answer: Mapping[str, Any]) -> tuple[Outcome, list[Broken]]:
    """What an answer says of its call; and whether it is that call's at all."""
    if "error" in answer:
        return Outcome(request.key, request.tool, Verdict.ERROR), []
    result = answer["result"]
    texts = [str(block.get("text", "")) for block in result.get("content") or [{}]]
    others = [text for text in texts if text.startswith("done ") and text.split(" ")[1] != request.key]
    broken = [Broken(TRUE_ANSWERS, f"{request.key} was answered as {text[:80]!r}") for text in others]
    if any(text.startswith(f"done {request.key}") for text in texts):
        return Outcome(request.key, request.tool, Verdict.DONE), broken
    told = (result.get("_meta") or {}).get(RELOAD_META) or {}
    if told.get("run") is False or any(NOT_RUN in text for text in texts):
        return Outcome(request.key, request.tool, Verdict.NOT_RUN), broken
    return Outcome(request.key, request.tool, Verdict.UNKNOWN), broken


def broken_in_ledger(outcomes: Iterable[Outcome], entries: Iterable[Mapping[str, Any]]) -> list[Broken]:
    """The answers beside what ran; the entries are read after the last of these answers came."""
    noted = list(entries)
    ran = Counter(str(entry["key"]) for entry in noted)
    effective = {str(entry["key"]) for entry in noted if entry["tool"] == EFFECTIVE}
    broken = [
        Broken(RUN_ONCE, f"{key} ran {ran[key]} times: {[entry for entry in noted if entry['key'] == key]}")
        for key in sorted(effective)
        if ran[key] > 1
    ]
    for outcome in outcomes:
        times = ran[outcome.key]
        if outcome.verdict is Verdict.DONE and not times:
            broken.append(Broken(TRUE_ANSWERS, f"{outcome.key} ({outcome.tool}) is said to be done, and never ran"))
        if outcome.verdict is Verdict.NOT_RUN and times:
            broken.append(Broken(TRUE_ANSWERS, f"{outcome.key} ({outcome.tool}) is said not to have run, and did"))
    return broken


def strange_files(names: Iterable[str]) -> list[Broken]:
    """Of the files in the program's folders, by their paths below the vendor's folder."""
    return [
        Broken(NOTHING_LEFT, f"no file of a known kind: {name}") for name in names if not KNOWN_FILES.fullmatch(name)
    ]
