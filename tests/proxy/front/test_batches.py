from __future__ import annotations

import json

import pytest

from uno_devserver.proxy.front.batches import Batches


def answer(request_id: object, **more: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": {}, **more}).encode()


def new() -> tuple[Batches, list[bytes]]:
    lines: list[bytes] = []
    return Batches(lines.append), lines


def ids(line: bytes) -> list[object]:
    return [each["id"] for each in json.loads(line)]


def test_answers_of_a_batch_are_written_together_when_all_are_there() -> None:
    batches, lines = new()
    batches.open([1, "1", 2], [answer(0)])

    batches.write(answer(2))
    batches.write(answer(1))
    assert lines == []
    batches.write(answer("1"))

    [line] = lines
    assert ids(line) == [0, 2, 1, "1"]


def test_what_does_not_belong_to_a_batch_passes_it() -> None:
    batches, lines = new()
    batches.open([1], [])
    others = [
        answer(7),
        answer("1"),
        b'{"jsonrpc":"2.0","method":"notifications/message"}',
        b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}',
    ]

    for other in others:
        batches.write(other)

    assert lines == others


def test_a_batch_that_needs_no_waiting_is_answered_at_once_and_one_of_notifications_not_at_all() -> None:
    batches, lines = new()

    batches.open([], [])
    assert lines == []
    batches.open([], [answer(1), answer(2)])

    assert ids(lines[0]) == [1, 2]


def test_a_cancelled_request_does_not_hold_up_the_others() -> None:
    batches, lines = new()
    batches.open([1, 2], [])
    batches.write(answer(1))

    batches.cancelled(2)
    batches.cancelled({"no": "id"})

    assert ids(lines[0]) == [1]


def test_two_requests_of_one_id_get_two_answers() -> None:
    batches, lines = new()
    batches.open([1, 1], [])

    batches.write(answer(1))
    batches.write(answer(1))
    batches.write(answer(1))

    assert ids(lines[0]) == [1, 1]
    assert json.loads(lines[1])["id"] == 1


def test_two_batches_are_kept_apart() -> None:
    batches, lines = new()
    batches.open([1, 2], [])
    batches.open([3, 4], [])

    for number in (3, 1, 4, 2):
        batches.write(answer(number))

    assert [ids(line) for line in lines] == [[3, 4], [1, 2]]


@pytest.mark.parametrize("value", [b"[" * 100_000 + b"]" * 100_000, b"1" * 5000], ids=["too deep", "too long a number"])
def test_an_answer_that_python_cannot_read_completes_its_batch(value: bytes) -> None:
    batches, lines = new()
    batches.open([1], [])
    line = b'{"jsonrpc":"2.0","id":1,"result":{"a":%b}}' % value

    batches.write(line)

    assert lines == [b"[" + line + b"]"]
