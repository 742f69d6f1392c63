"""What can be told of other processes: real ones, started for the purpose."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys

import pytest

from uno_devserver.system.processes import CHAIN_LIMIT, chain, is_alive, machine_name, user_name

# Each process starts the next one; the last prints its id; all wait for the end of the input.
ANCESTORS = """
import os, sys
for _ in range({depth}):
    if os.fork():
        break
else:
    print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def ended() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-ISc", ""])
    process.wait(20)
    return process.pid


# --- alive --------------------------------------------------------------------------------------------------------


def test_this_process_and_its_parent_live() -> None:
    assert is_alive(os.getpid())
    assert is_alive(os.getppid())
    assert is_alive(1)


def test_a_process_that_ended_does_not_live(ended: int) -> None:
    assert not is_alive(ended)


@pytest.mark.parametrize("pid", [0, -1, 2**31, 2**63, 10**30])
def test_a_number_that_no_process_can_have_does_not_live(pid: int) -> None:
    assert not is_alive(pid)


# --- ancestors ----------------------------------------------------------------------------------------------------


def test_the_chain_leads_from_a_process_to_its_ancestors() -> None:
    links = chain(os.getpid(), 0)

    assert [link.pid for link in links][:2] == [os.getpid(), os.getppid()]
    assert links[0].name
    assert "python" in links[0].name


def test_the_registered_parent_comes_before_that_of_the_system() -> None:
    with subprocess.Popen([sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE) as child:
        links = chain(os.getppid(), child.pid)
        child.kill()

    assert [link.pid for link in links][:3] == [os.getppid(), child.pid, os.getpid()]


def test_a_process_that_is_gone_has_no_name_and_ends_the_chain(ended: int) -> None:
    links = chain(os.getpid(), ended)

    assert [(link.pid, link.name is None) for link in links] == [(os.getpid(), False), (ended, True)]


def test_a_parent_that_names_itself_does_not_make_a_circle() -> None:
    assert [link.pid for link in chain(os.getpid(), os.getpid())] == [os.getpid()]


@pytest.mark.parametrize("parent", [2**31, 10**30])
def test_a_registered_parent_that_no_process_can_be_ends_the_chain(parent: int) -> None:
    assert [link.name is None for link in chain(os.getpid(), parent)] == [False, True]


@pytest.mark.parametrize("pid", [0, -5])
def test_no_process_has_no_chain(pid: int) -> None:
    assert chain(pid, os.getpid()) == ()


def test_the_chain_is_cut_at_its_limit() -> None:
    code = ANCESTORS.format(depth=CHAIN_LIMIT + 2)
    with subprocess.Popen([sys.executable, "-ISc", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as oldest:
        assert oldest.stdout
        youngest = int(oldest.stdout.readline())

        links = chain(youngest, 0)

        assert len(links) == CHAIN_LIMIT
        assert oldest.pid not in [link.pid for link in links]


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "name"),
    [("alpha", "alpha"), ("alpha.beta.example", "alpha"), ("MixedCase", "MixedCase"), (".dotfirst", "")],
)
def test_the_machines_name_ends_at_the_first_dot(monkeypatch: pytest.MonkeyPatch, host: str, name: str) -> None:
    """As recorded from .NET's Environment.MachineName."""
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", host, "", "", "")))

    assert machine_name({"HOSTNAME": "other", "COMPUTERNAME": "other"}) == name


def test_the_users_name_is_that_of_the_passwd_entry_whatever_the_environment_says() -> None:
    environment = {"USER": "other", "LOGNAME": "other", "USERNAME": "other"}

    assert user_name(environment) == pwd.getpwuid(os.geteuid()).pw_name


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user that the system does not know")
def test_a_user_without_a_passwd_entry_has_no_name() -> None:
    code = "import os, uno_devserver.system.processes as p; os.setuid(54321); print(repr(p.user_name()))"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)

    assert result.stdout == "''\n"


def test_windows_takes_both_names_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    environment = {"COMPUTERNAME": "DESKTOP-ABC", "USERNAME": "developer"}

    assert (machine_name(environment), user_name(environment)) == ("DESKTOP-ABC", "developer")
    assert (machine_name({}), user_name({})) == ("", "")
