"""Every harness, tried without atheris: on its seeds, and on a few dozen inputs made from them."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from fuzz.pieces import Pieces, cut_and_data
from fuzz.table import TARGETS, named
from fuzz.target import MAX_SECONDS, Target, TooSlow, attempt

SEEDS, MUTATIONS = 12, 24  # all of them together take some seconds


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.name))
def test_the_promise_holds_for_the_seeds_and_for_inputs_like_them(target: Target) -> None:
    seeds = list(islice(target.seeds(), SEEDS))
    chance = random.Random(target.name)

    for data in (*seeds, *(mutated(chance.choice(seeds), target, chance) for _ in range(MUTATIONS))):
        attempt(target, data[: target.max_bytes])


def test_every_target_has_a_name_of_its_own_and_seeds() -> None:
    assert len({target.name for target in TARGETS}) == len(TARGETS)
    assert all(target.seeds() and target.promise for target in TARGETS)


def test_a_promise_that_is_broken_is_noticed() -> None:
    target = named("versions")

    def wrong(_data: bytes) -> None:
        raise IndexError

    with pytest.raises(IndexError):
        attempt(target.replace(check=wrong), b"")


def test_an_input_that_takes_too_long_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, MAX_SECONDS + 1))
    monkeypatch.setattr("fuzz.target.time.process_time", lambda: next(clock))

    with pytest.raises(TooSlow, match="for 1 bytes"):
        attempt(named("versions"), b"1")


def test_pieces_are_the_bytes_in_order_and_zeros_behind_them() -> None:
    pieces = Pieces(b"\x05\x01\x02\x03rest")

    assert (pieces.number(4), pieces.flag(), pieces.choice("abc"), pieces.take(1)) == (1, True, "c", b"\x03")
    assert (pieces.rest(), pieces.left, pieces.number(300), pieces.take(2)) == (b"rest", 0, 0, b"")


def test_what_is_cut_is_whole_again_when_it_is_joined() -> None:
    body, parts = cut_and_data(b"\x05\x01\x02\x03\x04\x05\x06\x07" + b"abcdefgh")

    assert body == b"abcdefgh"
    assert len(parts) > 1
    assert b"".join(parts) == body


def mutated(data: bytes, target: Target, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(changed))
        match chance.randint(0, 3):
            case 0:
                changed[at : at + 1] = bytes([chance.randint(0, 255)])
            case 1:
                del changed[at : at + chance.randint(1, 8)]
            case 2 if target.words:
                word = chance.choice(target.words)
                changed[at:at] = word.encode("utf-8", "surrogatepass") if isinstance(word, str) else word
            case _:
                changed[at:at] = changed[at // 2 : at // 2 + chance.randint(1, 20)]
    return bytes(changed)
