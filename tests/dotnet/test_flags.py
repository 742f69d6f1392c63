"""The Host's flags, read by us and by .NET's configuration; where we differ on purpose, no case is here."""

from __future__ import annotations

import json

from dotnet.sdk import Client
from uno_devserver.host.flags import read_flags

CASES = [
    [],
    ["--httpPort", "5000"],
    ["--httpPort=5000"],
    ["/httpPort", "5000"],
    ["/httpPort=5000"],
    ["httpPort=5000"],
    ["--HTTPPORT", "5000", "--httpport", "5001"],
    ["--addins="],
    ["--addins", ""],
    ["--addins", ";"],
    ["--addins", "/a b/c.dll;/ü/d=e.dll"],
    ["--addins=/a b/c.dll;/ü/d=e.dll"],
    ["/addins=/a/b.dll"],
    ["--ideChannel", "-x"],
    ["--ideChannel", "/x"],
    ["--ideChannel", "a=b"],
    ["--ideChannel=", "--ppid", "1"],
    ["-c", "list"],
    ["-c=list"],
    ["--command", "list"],
    ["stray", "--ppid", "1"],
    ["-x", "--ppid", "1"],
    ["--ppid", "1", "stray"],
    ["--metadata-updates", "true", "--httpPort", "0"],
    ["--metadata-updates=True"],
    ["--some-thing", "else", "--Other:Part=x y"],
    ["--quoted", '"in quotes"'],
    ["--trimmed", "  blanks  "],
]


def test_every_form_means_the_same_to_us_and_to_dotnet(client: Client) -> None:
    theirs = client.lines("flags", given=json.dumps(CASES))

    assert [dict(read_flags(case, {}).settings) for case in CASES] == theirs


def test_the_environment_means_the_same_to_us_and_to_dotnet(client: Client) -> None:
    environ = {"UNO_DEVSERVER_httpPort": "5000", "UNO_DEVSERVER_ADDINS": "a;b", "uno_devserver_ppid": "1"}

    [theirs] = client.with_environment(environ).lines("flags", given=json.dumps([["--httpPort", "5001"]]))

    assert dict(read_flags(["--httpPort", "5001"], environ).settings) == theirs
