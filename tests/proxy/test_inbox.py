"""The way to the engine: nothing is lost or overtaken, whoever puts it in, and whatever becomes of the loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from uno_devserver.proxy.upstream.launcher import Inbox


def test_what_waits_comes_in_order_when_it_is_opened_and_all_else_as_it_comes() -> None:
    inbox = Inbox()
    taken: list[object] = []
    inbox.put(1)
    inbox.put(2)

    inbox.open(None, taken.append)
    inbox.put(3)

    assert taken == [1, 2, 3]


def test_what_other_threads_put_in_is_taken_in_the_loop() -> None:
    inbox = Inbox()
    taken: list[object] = []

    async def work() -> None:
        over = asyncio.Event()

        def take(message: int) -> None:
            taken.append((message, threading.current_thread()))
            if message == 999:
                over.set()

        inbox.open(asyncio.get_running_loop(), take)
        threading.Thread(target=lambda: deque(map(inbox.put, range(1000)))).start()
        async with asyncio.timeout(10):
            await over.wait()

    asyncio.run(work())

    assert taken == [(number, threading.current_thread()) for number in range(1000)]


def test_what_is_put_in_by_the_loop_is_taken_when_that_is_done_with_what_it_does() -> None:
    inbox = Inbox()
    taken: list[object] = []

    async def work() -> None:
        inbox.open(asyncio.get_running_loop(), taken.append)
        inbox.put(1)
        inbox.put(2)
        assert taken == []
        await asyncio.sleep(0)

    asyncio.run(work())

    assert taken == [1, 2]


def test_what_came_when_the_loop_had_ended_goes_to_whoever_opens_it_next() -> None:
    inbox = Inbox()
    taken: list[object] = []

    async def work() -> None:
        inbox.open(asyncio.get_running_loop(), taken.append)

    asyncio.run(work())
    inbox.put(1)
    inbox.put(2)
    assert taken == []

    inbox.open(None, taken.append)

    assert taken == [1, 2]


def test_what_is_expected_is_taken_in_the_same_turn_also_what_another_thread_put_in() -> None:
    inbox = Inbox()
    taken: list[object] = []

    async def work() -> None:
        inbox.open(asyncio.get_running_loop(), taken.append)
        inbox.expect()
        inbox.put(1)
        other = threading.Thread(target=inbox.put, args=(2,))
        other.start()
        other.join(10)
        assert taken == []
        inbox.hand_over()
        assert taken == [1, 2]
        inbox.put(3)
        await asyncio.sleep(0)

    asyncio.run(work())

    assert taken == [1, 2, 3]
