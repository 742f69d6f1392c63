"""Which files of a workspace lead to another server, and which settings count while they are being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.files import write
from uno_devserver.proxy.upstream.configured import ConfiguredUpstream
from uno_devserver.proxy.upstream.host import HostUpstream
from uno_devserver.proxy.workspace.controller import counting, is_outdated
from uno_devserver.system.folders import folders
from uno_devserver.workspace.config import AS_BEFORE, Config, ServerCommand, read_config
from uno_devserver.workspace.resolver import resolve

HOST = Config("/ws/.devtools/host.config.jsonc")
FIRST = HOST.replace(server=ServerCommand("first"))
UNREADABLE = HOST.replace(readable=False)


def configured(folder: Path, started_with: Config | None, *, trusted: bool | None = True) -> ConfiguredUpstream:
    upstream = ConfiguredUpstream(resolve(str(folder)), folders(), {}, trusts=lambda _: True)
    upstream.config, upstream.trusted = started_with, trusted
    return upstream


@pytest.mark.parametrize(
    ("now", "outdated"),
    [
        (FIRST, False),
        (FIRST.replace(wait_calls=True), False),  # which needs no other server
        (FIRST.replace(server=ServerCommand("second")), True),
        (FIRST.replace(server_root="/ws/other"), True),
        (HOST, True),
        (UNREADABLE, False),
    ],
)
def test_a_server_of_the_config_is_outdated_when_that_names_another(
    tmp_path: Path, now: Config, outdated: bool
) -> None:
    assert is_outdated(configured(tmp_path, FIRST), now) is outdated


@pytest.mark.parametrize(("now", "outdated"), [(FIRST, False), (HOST, True)])
def test_before_its_first_start_it_is_outdated_only_when_there_is_no_server_to_start(
    tmp_path: Path, now: Config, outdated: bool
) -> None:
    assert is_outdated(configured(tmp_path, None, trusted=None), now) is outdated


def test_what_was_not_agreed_to_is_always_outdated(tmp_path: Path) -> None:
    assert is_outdated(configured(tmp_path, FIRST, trusted=False), FIRST)
    assert is_outdated(configured(tmp_path, FIRST, trusted=False), UNREADABLE)


@pytest.mark.parametrize(("now", "outdated"), [(HOST, False), (FIRST, True), (UNREADABLE, False)])
def test_a_host_is_outdated_when_the_config_names_a_server(tmp_path: Path, now: Config, outdated: bool) -> None:
    host = HostUpstream(resolve(str(tmp_path)), folders(), {}, trusts=lambda _: True)

    assert is_outdated(host, now) is outdated


def test_a_config_that_is_just_being_written_changes_no_setting(tmp_path: Path) -> None:
    # given
    path = write(tmp_path / ".devtools" / "host.config.jsonc", '{"proxy": {"waitCalls": true}}')
    before = read_config(str(path))
    assert before.wait_calls

    # when
    write(path, '{"proxy": {"waitCalls": tr')
    kept = counting(before, read_config(str(path)))

    # then
    assert kept.wait_calls
    assert [issue.remediation for issue in kept.issues] == [AS_BEFORE]


def test_a_config_in_another_place_counts_whether_it_can_be_read_or_not(tmp_path: Path) -> None:
    path = write(tmp_path / ".devtools" / "host.config.jsonc", "{")
    now = read_config(str(path))

    assert counting(FIRST.replace(wait_calls=True), now) is now
