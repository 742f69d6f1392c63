"""Each check of an invariant, given something that breaks it: one that could not fail would prove nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chaos.invariants import (
    ANSWER_SECONDS,
    NO_OTHER_ANSWER,
    NOT_RUN,
    NOTHING_LEFT,
    ONE_ANSWER,
    RELOAD_META,
    RUN_ONCE,
    TRUE_ANSWERS,
    VALID_LINES,
    Conversation,
    Outcome,
    Request,
    Verdict,
    broken_in_ledger,
    outcome_of,
    strange_files,
)


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def asked(*ids: int) -> Conversation:
    conversation = Conversation("c")
    for number in ids:
        conversation.asks(Request(number, "tools/call", 0.0, f"key-{number}", "add"))
    return conversation


def invariants(conversation: Conversation) -> list[str]:
    return [broken.invariant for broken in conversation.broken]


# --- the conversation


def test_one_answer_to_each_request_in_any_order_is_as_it_should_be() -> None:
    conversation = asked(1, 2)

    conversation.hears(line(id=2, result={}))
    request, _ = conversation.hears(line(id=1, error={"code": -1, "message": "no"}))

    assert request is not None
    assert request.id == 1
    assert not conversation.broken
    assert not conversation.overdue(2 * ANSWER_SECONDS)


@pytest.mark.parametrize(
    ("lines", "invariant"),
    [
        ([line(id=1, result={}), line(id=1, result={})], ONE_ANSWER),
        *(([line(id=other, result={})], NO_OTHER_ANSWER) for other in (2, "1", None, 1.5)),
        ([b""], VALID_LINES),
        ([b"hello"], VALID_LINES),
        ([b'{"jsonrpc": "2.0", "id": 1, "res'], VALID_LINES),
        ([b"[]"], VALID_LINES),
        ([b"{}"], VALID_LINES),
        ([b'{"jsonrpc": "1.0", "id": 1, "result": {}}'], VALID_LINES),
        ([b'{"jsonrpc": "2.0", "id": 1}'], VALID_LINES),
        ([b'{"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}'], VALID_LINES),
        ([b'{"jsonrpc": "2.0", "result": {}}'], VALID_LINES),
        ([b'{"jsonrpc": "2.0", "method": "m", "result": {}}'], VALID_LINES),
        ([b"\xff\xfe"], VALID_LINES),
    ],
)
def test_an_answer_too_many_and_a_line_that_is_no_message_are_found(lines: list[bytes], invariant: str) -> None:
    conversation = asked(1)

    for each in lines:
        conversation.hears(each)

    assert invariants(conversation) == [invariant]


def test_a_request_without_an_answer_is_found_when_its_time_is_over() -> None:
    conversation = asked(1)

    assert not conversation.overdue(ANSWER_SECONDS)
    assert [broken.invariant for broken in conversation.overdue(ANSWER_SECONDS + 1)] == [ONE_ANSWER]


def test_a_cancelled_call_may_have_one_answer_or_none() -> None:
    conversation = asked(1)

    conversation.cancels(1)
    assert not conversation.overdue(2 * ANSWER_SECONDS)
    conversation.hears(line(id=1, result={}))
    conversation.hears(line(id=1, result={}))

    assert invariants(conversation) == [ONE_ANSWER]


def test_nonsense_is_answered_once_at_most() -> None:
    conversation = asked()
    conversation.errs()

    conversation.hears(line(id=None, error={"code": -32700, "message": "no JSON"}))
    assert not conversation.broken
    conversation.hears(line(id=None, error={"code": -32700, "message": "no JSON"}))

    assert invariants(conversation) == [NO_OTHER_ANSWER]


# --- the ledger


def ran(*keys: str, tool: str = "add") -> list[dict[str, Any]]:
    return [{"key": key, "tool": tool, "pid": 1} for key in keys]


def test_calls_that_ran_as_they_were_answered_are_as_they_should_be() -> None:
    outcomes = [
        Outcome("done", "add", Verdict.DONE),
        Outcome("not", "add", Verdict.NOT_RUN),
        Outcome("lost", "add", Verdict.UNKNOWN),
        Outcome("again", "look", Verdict.DONE),
    ]

    entries = [*ran("done", "lost", "nobody waited for it"), *ran("again", "again", tool="look")]
    assert not broken_in_ledger(outcomes, entries)


@pytest.mark.parametrize(
    ("outcomes", "entries", "invariant"),
    [
        ([], ran("key", "other", "key"), RUN_ONCE),
        ([Outcome("key", "look", Verdict.DONE)], ran("other"), TRUE_ANSWERS),
        ([Outcome("key", "add", Verdict.NOT_RUN)], ran("key"), TRUE_ANSWERS),
    ],
    ids=["ran twice", "never ran", "ran although the answer says no"],
)
def test_a_ledger_that_contradicts_the_answers_is_found(
    outcomes: list[Outcome], entries: list[dict[str, Any]], invariant: str
) -> None:
    assert [each.invariant for each in broken_in_ledger(outcomes, entries)] == [invariant]


# --- what an answer says


def result(*texts: str, **more: Any) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": text} for text in texts], **more}}


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (result("done key-1"), Verdict.DONE),
        (result("a note", "done key-1 xxxx"), Verdict.DONE),
        (result(f"It is gone. {NOT_RUN} Try again.", isError=True), Verdict.NOT_RUN),
        (result("It restarts.", isError=True, _meta={RELOAD_META: {"run": False}}), Verdict.NOT_RUN),
        (result("Nobody knows. It has not been run again.", isError=True), Verdict.UNKNOWN),
        ({"error": {"code": -1, "message": "no"}}, Verdict.ERROR),
    ],
)
def test_what_an_answer_says_of_its_call(answer: dict[str, Any], verdict: Verdict) -> None:
    outcome, broken = outcome_of(Request(1, "tools/call", 0.0, "key-1", "add"), answer)

    assert outcome == Outcome("key-1", "add", verdict)
    assert not broken


def test_the_answer_of_another_call_is_found() -> None:
    _, broken = outcome_of(Request(1, "tools/call", 0.0, "key-1", "add"), result("done key-10"))

    assert [each.invariant for each in broken] == [TRUE_ANSWERS]


# --- files


def test_files_of_unknown_kinds_are_found_and_known_ones_are_not() -> None:
    known = ["uno.devserver/catalogue/ws-12ab.json", "DevServers/devserver-12.aux.json", "uno.devserver/proxies/1.json"]
    strange = ["uno.devserver/catalogue/.ws-12ab.json.tmp", "DevServers/devserver-12.json.new", "uno.devserver/core"]

    broken = strange_files([*known, *strange])

    assert [each.text.rpartition(": ")[2] for each in broken] == strange
    assert {each.invariant for each in broken} == {NOTHING_LEFT}
