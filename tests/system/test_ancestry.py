from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from support.clocks import move_clock
from support.servers import Processes
from support.waiting import wait_for
from uno_devserver.system import ancestry, proc
from uno_devserver.system.ancestry import Ancestor, ancestors, ancestors_of, wait_for_end

PATIENCE = 60.0


def ancestor(pid: int) -> Ancestor:
    found = ancestry._ancestor(pid)
    assert found
    return found[0]


def test_our_parent_comes_first_and_its_parents_behind_it() -> None:
    program = "from uno_devserver.system.ancestry import ancestors\nprint(*(one.pid for one in ancestors()))"
    shell = ["sh", "-c", '"$0" -c "$1"; true', sys.executable, program]  # true: else it would become the program

    with subprocess.Popen(shell, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        pids = process.stdout.read().split()

    assert [int(pid) for pid in pids][:2] == [process.pid, os.getpid()]


def test_a_process_that_has_been_given_the_id_of_a_parent_is_no_ancestor() -> None:
    # given a parent that has ended, whose id is that of a younger process by now
    found = {
        9: (Ancestor(9, "we", (), 5.0), 8),
        8: (Ancestor(8, "wrapper", (), 5.0), 7),  # started within the same tick
        7: (Ancestor(7, "stranger", (), 6.0), 6),
        6: (Ancestor(6, "its parent", (), 1.0), 0),
    }

    assert [one.name for one in ancestors_of(9, found.get)] == ["wrapper"]


def test_an_ancestor_has_a_name_and_arguments() -> None:
    here = ancestor(os.getpid())

    assert here.name
    assert any("pytest" in word or "-c" in word for word in here.arguments)


@pytest.mark.parametrize("way", ["told", "looked for", "psutil"])
def test_the_end_of_any_of_them_is_noticed(processes: Processes, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way != "told":
        monkeypatch.setattr(proc, "pidfd", lambda pid: None)
    if way == "psutil":
        monkeypatch.setattr(ancestry, "_ancestor", ancestry._from_psutil)
    one, two = processes.start(), processes.start()
    those = (ancestor(one.pid), ancestor(two.pid))
    ended: list[Ancestor] = []
    waiting = threading.Thread(target=lambda: ended.append(wait_for_end(those)))
    waiting.start()

    os.kill(two.pid, 9)  # nobody has asked yet how it ended

    waiting.join(PATIENCE)
    assert ended == [those[1]]


@pytest.mark.parametrize("way", ["looked for", "psutil"])
def test_a_clock_that_is_set_ends_no_process(processes: Processes, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(proc, "pidfd", lambda pid: None)
    monkeypatch.setattr(ancestry, "POLL_SECONDS", 0.01)
    if way == "psutil":
        monkeypatch.setattr(proc, "AVAILABLE", False)
        monkeypatch.setattr(ancestry, "_ancestor", ancestry._from_psutil)
    looks: list[int] = []
    look = ancestry._identity

    def looking(pid: int) -> object:
        looks.append(pid)
        return look(pid)

    monkeypatch.setattr(ancestry, "_identity", looking)
    process = processes.start()
    those = (ancestor(process.pid),)
    ended: list[Ancestor] = []
    waiting = threading.Thread(target=lambda: ended.append(wait_for_end(those)))
    waiting.start()
    wait_for(lambda: len(looks) > 2)

    move_clock(monkeypatch, hours=1)
    before = len(looks)

    wait_for(lambda: len(looks) > before + 2 or ended)
    assert ended == []
    process.kill()
    waiting.join(PATIENCE)
    assert ended == list(those)


def test_one_that_has_ended_already_is_not_waited_for(processes: Processes) -> None:
    process = processes.start()
    gone = ancestor(process.pid)
    process.kill()

    assert wait_for_end((ancestor(os.getpid()), gone)) == gone


def test_another_process_with_its_number_is_not_taken_for_it() -> None:
    here = ancestor(os.getpid())
    earlier = here.replace(started=here.started - 1)

    assert wait_for_end((earlier,)) == earlier


def test_both_ways_of_looking_tell_the_same() -> None:
    by_proc, by_psutil = ancestry._from_proc(os.getpid()), ancestry._from_psutil(os.getpid())

    assert by_proc
    assert by_psutil
    assert (by_proc[0].arguments, by_proc[1]) == (by_psutil[0].arguments, by_psutil[1])
    assert ancestors()[0].pid == os.getppid()
