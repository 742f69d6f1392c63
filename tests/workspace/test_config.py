"""host.config.jsonc: what counts of it, and what is said about what does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.files import write
from uno_devserver.issues import REMEDIES
from uno_devserver.workspace.config import Config, read_config


def _read(tmp_path: Path, content: str | bytes) -> Config:
    return read_config(str(write(tmp_path / ".devtools" / "host.config.jsonc", content)))


def test_without_a_config_the_defaults_count(tmp_path: Path) -> None:
    assert read_config(None) == Config(wait_calls=False, issues=())
    assert read_config(str(tmp_path / "gone.jsonc")) == Config()


@pytest.mark.parametrize(
    ("content", "wait_calls"),
    [
        ('{"proxy": {"waitCalls": true}}', True),
        ('{"proxy": {"waitCalls": false}}', False),
        ('{"proxy": {}}', False),
        ("{}", False),
        ('// mine\n{"proxy": {"waitCalls": true, /* later */ },}', True),
        ('\ufeff{"proxy": {"waitCalls": true}}', True),
    ],
)
def test_calls_wait_where_the_config_says_so(tmp_path: Path, content: str, wait_calls: bool) -> None:
    assert _read(tmp_path, content) == Config(wait_calls=wait_calls)


def test_what_others_read_is_not_complained_about(tmp_path: Path) -> None:
    content = '{"hotReload": {"mode": "swap"}, "proxy": {"waitCalls": true, "later": [1]}, "servers": 3}'

    assert _read(tmp_path, content) == Config(wait_calls=True)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"proxy": {"waitCalls": 1}}', "proxy.waitCalls must be true or false"),
        ('{"proxy": {"waitCalls": "true"}}', "proxy.waitCalls must be true or false"),
        ('{"proxy": {"waitCalls": null}}', "proxy.waitCalls must be true or false"),
        ('{"proxy": []}', "proxy must be an object"),
        ("[]", "it must be an object"),
        ("null", "it must be an object"),
    ],
)
def test_a_wrong_type_is_named_by_its_place_in_the_file(tmp_path: Path, content: str, complaint: str) -> None:
    config = _read(tmp_path, content)

    (issue,) = config.issues
    assert config.wait_calls is False
    assert issue.message == f"{tmp_path}/.devtools/host.config.jsonc: {complaint}."
    assert (issue.code, issue.fatal, issue.remediation) == ("ConfigInvalid", False, REMEDIES["ConfigInvalid"])


def test_a_broken_file_is_reported_with_line_and_column(tmp_path: Path) -> None:
    config = _read(tmp_path, '{\n  "proxy": {"waitCalls": tru }\n}')

    (issue,) = config.issues
    assert "line 2, column 26" in issue.message
    assert config.wait_calls is False


@pytest.mark.parametrize("kind", ["folder", "fifo", "too large"])
def test_what_is_no_readable_file_is_reported(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "host.config.jsonc"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b" " * (1024 * 1024 + 1))

    (issue,) = read_config(str(path)).issues

    assert issue.message.startswith(f"{path} cannot be read: ")


@given(st.binary(max_size=200))
def test_any_content_gives_a_config(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonc"
    path.write_bytes(content)

    assert isinstance(read_config(str(path)).wait_calls, bool)
