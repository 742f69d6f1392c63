"""Which entries are ours, in whatever form they stand there."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.setup.edits.document import ServerEntry
from uno_devserver.setup.entry_format import settings_for
from uno_devserver.setup.entry_match import index_version, matches
from uno_devserver.setup.expected_entry import index_problem, up_to_date
from uno_devserver.setup.profiles import Dialect
from uno_devserver.setup.server_definition import Detection, ServerDefinition

from .made import CHOICE, DNX, MERGED, PLAIN, SERVERS, STABLE, UNO_APP, UNO_DOCS, URL, command, match_of, stdio


def test_names_of_all_servers_count_before_any_content() -> None:
    entries = (
        ServerEntry("UnoDocs", stdio(STABLE)),
        ServerEntry("uno", {"url": URL}),
        ServerEntry("other", {"url": "http://x"}),
    )

    found = matches(entries, SERVERS, PLAIN)

    assert [(one.server.name, one.index) for one in found] == [("UnoDocs", 0), ("UnoDocs", 1)]


@pytest.mark.parametrize(
    ("settings", "dialect"),
    [
        (stdio(DNX), PLAIN),
        ({"command": ["uvx", "uno-devserver", "--mcp-app"]}, MERGED),
        ({"command": ["uvx", "uno-devserver", "--mcp-app"]}, PLAIN),
        (stdio(STABLE), MERGED),
        ({"command": ["uvx"], "args": ["uno-devserver", "--mcp-app"]}, PLAIN),
        ({"cmd": "uvx", "args": ["uno-devserver", "--mcp-app"]}, PLAIN),
        ({"transport": {"type": "stdio", **stdio(STABLE)}}, PLAIN),
        ({"command": {"path": "uvx", "args": ["uno-devserver", "--mcp-app"]}}, PLAIN),
        (command("dotnet", "dnx", "-y", "uno.devserver", "--mcp-app"), PLAIN),
        (command("C:\\tools\\uno-devserver.exe", "--mcp-app"), PLAIN),
    ],
)
def test_an_entry_under_another_name_is_known_by_its_command(settings: dict[str, Any], dialect: Dialect) -> None:
    match = match_of(settings, "renamed", dialect)

    assert (match.server, match.transport, match.certain) == (UNO_APP, "stdio", True)


@pytest.mark.parametrize("key", ["url", "serverUrl", "httpUrl", "uri", "address"])
def test_an_address_is_found_under_every_name_that_clients_have_for_it(key: str) -> None:
    match = match_of({key: URL}, "docs", Dialect(url_key="address"))

    assert (match.server, match.transport, match.variant) == (UNO_DOCS, "http", "stable")


def test_a_local_address_is_certain_only_under_a_name_that_says_uno() -> None:
    address = {"url": "http://localhost:5000/mcp"}

    assert match_of(address, "my-uno").certain
    assert not match_of(address, "figma").certain
    assert match_of({"url": "http://localhost:5000/uno.devserver/mcp"}, "figma").certain


def test_of_twins_only_the_last_is_seen_by_clients() -> None:
    entries = (
        ServerEntry("UnoApp", stdio(DNX)),
        ServerEntry("x", stdio(STABLE)),
        ServerEntry("UnoApp", None),
        ServerEntry("x", {}),
    )

    found = matches(entries, SERVERS, PLAIN)

    assert [(one.entry.name, one.index, one.shadowed) for one in found] == [
        ("UnoApp", 0, True),
        ("x", 1, True),
        ("UnoApp", 2, False),
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["command", "args", "url", "env", "transport", "path", "type"]), inner)
        ),
        max_leaves=12,
    )
)
def test_nothing_that_stands_in_an_entry_makes_it_fail(settings: object) -> None:
    entry = ServerEntry("UnoApp", settings if isinstance(settings, dict) else None)

    match = matches((entry,), SERVERS, PLAIN)[0]

    assert match.transport in ("stdio", "http", "unknown")
    assert isinstance(up_to_date(match, CHOICE, PLAIN), bool)
    assert isinstance(index_problem(match.says, UNO_APP, CHOICE), str)
    assert settings_for(STABLE, UNO_APP, PLAIN, match)[0]["command"] == "uvx"


@pytest.mark.parametrize(
    "settings", [None, {}, {"command": 7}, {"command": "", "args": "x"}, {"command": [[1]]}, {"args": ["--mcp-app"]}]
)
def test_an_entry_of_our_name_that_says_nothing_is_ours_and_outdated(settings: Any) -> None:
    match = match_of(settings)

    assert (match.transport, match.variant, match.runner) == ("unknown", "stable", None)
    assert not up_to_date(match, CHOICE, PLAIN)


def test_a_text_that_is_too_long_for_a_pattern_matches_nothing() -> None:
    greedy = ServerDefinition("Mine", "stdio", {}, Detection(("a+$",), ("a+$",), ("^https://a+$",), ("^http://a+$",)))
    long = "a" * 10_000 + "."
    entries = (
        ServerEntry(long, {"command": "x"}),
        ServerEntry("command", {"command": "x", "args": [long]}),
        ServerEntry("address", {"url": f"https://{long}"}),
        ServerEntry("weak", {"url": f"http://{long}"}),
    )

    assert matches(entries, (greedy,), PLAIN) == ()


def test_a_costly_pattern_sees_a_bounded_text_only() -> None:
    costly = ServerDefinition("Slow", "stdio", {}, Detection(keys=("^Slow$",), commands=("(x+)y.*z",)))
    long = ServerEntry("other", {"command": "x", "args": ["x" * 10_000_000]})

    begun = time.process_time()
    found = matches((long,), (costly,), PLAIN)

    assert found == ()
    assert time.process_time() - begun < 5  # without the bound: hours


@pytest.mark.parametrize(
    ("args", "variant"),
    [
        (("uno-devserver", "--mcp-app"), "stable"),
        (("uno-devserver@latest", "--mcp-app"), "stable"),
        (("uno-devserver@1.2.3", "--mcp-app"), "pinned:1.2.3"),
        (("--from", "uno-devserver==1.2.3", "uno-devserver", "--mcp-app"), "pinned:1.2.3"),
        (("--from", "uno-devserver==1.2.*", "uno-devserver", "--mcp-app"), "stable"),
        (("--prerelease", "allow", "--from", "uno-devserver==1.2.*", "uno-devserver", "--mcp-app"), "prerelease"),
        (("-y", "--version", "5.6.0-dev.42", "uno.devserver", "--mcp-app"), "pinned:5.6.0-dev.42"),
        (("-y", "--version=5.6.0", "uno.devserver", "--mcp-app"), "pinned:5.6.0"),
        (("--prerelease", "allow", "uno-devserver@1.2.3", "--mcp-app"), "pinned:1.2.3"),
        (("-y", "--prerelease", "uno.devserver", "--mcp-app"), "prerelease"),
        (("--prerelease", "allow", "uno-devserver", "--mcp-app"), "prerelease"),
        (("--prerelease=allow", "uno-devserver", "--mcp-app"), "prerelease"),
        (("--prerelease=disallow", "uno-devserver", "--mcp-app"), "stable"),
        (("--prerelease", "if-necessary", "uno-devserver", "--mcp-app"), "stable"),
        (("uno-devserver", "--mcp-app", "--version"), "stable"),
    ],
)
def test_the_variant_is_read_from_the_arguments(args: tuple[str, ...], variant: str) -> None:
    assert match_of(command("uvx", *args)).variant == variant


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("uvx uno-devserver --mcp-app", ""),
        ("uvx uno-devserver@latest --mcp-app", ""),
        ("uvx --prerelease allow uno-devserver --mcp-app", ""),
        ("uvx --python 3.12 Uno_DevServer --mcp-app", ""),
        ("/opt/uvx.exe uno-devserver@1.2.3 --mcp-app", "1.2.3"),
        ("uvx --from uno-devserver==1.2.* uno-devserver --mcp-app", "1.2.*"),
        ("uvx --from=uno-devserver[sdk]~=1.2.0 uno-devserver --mcp-app", "1.2.0"),
        ("cmd /c uvx uno-devserver --mcp-app", ""),
        ("uv tool run uno-devserver --mcp-app", ""),
        ("pipx run --spec uno-devserver>=1 uno-devserver --mcp-app", "1"),
        ("uvx --from git+https://example.com/x uno-devserver --mcp-app", None),
        ("uvx --from . uno-devserver --mcp-app", None),
        ("uvx uno-devserver@git+https://example.com/x --mcp-app", None),
        ("uvx --from ./uno-devserver.whl uno-devserver --mcp-app", None),
        ("uv run uno-devserver --mcp-app", None),
        ("pipx uno-devserver --mcp-app", None),
        ("uvx other --mcp-app uno-devserver", None),
        ("dnx -y uno.devserver --mcp-app", None),
        ("/opt/uno-devserver --mcp-app", None),
        ("uvx", None),
        ("uvx --from", None),
    ],
)
def test_what_an_entry_asks_a_package_index_for_is_seen_in_every_form(line: str, version: str | None) -> None:
    assert index_version(match_of(command(*line.split())).says, UNO_APP) == version


def test_an_address_for_a_server_that_is_started_is_the_old_way() -> None:
    assert match_of({"url": "http://localhost:5000/mcp"}).variant == "legacy-http"
    assert match_of({"url": "https://example.com"}).variant == "legacy-http"


@pytest.mark.parametrize(
    ("words", "runner"),
    [
        (("uvx", "uno-devserver", "--mcp-app", "--more"), "uvx"),
        (("/home/me/.local/bin/uvx", "uno-devserver", "--mcp-app"), "uvx"),
        (("dnx.cmd", "-y", "uno.devserver", "--mcp-app"), "dnx"),
        (("dotnet", "dnx", "-y", "uno.devserver", "--mcp-app"), "dnx"),
        (("uno.devserver", "--mcp-app"), "path"),
        (("/opt/uno-devserver", "--mcp-app", "--port", "1"), "path"),
        (("/usr/bin/python3", "-m", "uno_devserver", "--mcp-app"), "path"),
        (("/usr/bin/python3", "-P", "-m", "uno_devserver", "--mcp-app"), "path"),
        (("npx", "something"), None),
        (("uvx", "something", "--else"), None),
    ],
)
def test_the_runner_is_known_by_its_program(words: tuple[str, ...], runner: str | None) -> None:
    assert match_of(command(*words)).runner == runner


@pytest.mark.parametrize(
    ("words", "own"),
    [
        (("uvx", "--from", "git+https://example.com/x", "uno-devserver", "--mcp-app"), True),
        (("uvx", "--python", "3.12", "uno-devserver", "--mcp-app"), True),
        (("uvx", "uno-devserver", "-l", "Debug", "--mcp-app"), True),
        (("uno-devserver", "-l", "Debug", "--mcp-app"), True),
        (("dotnet", "dnx", "-y", "--interactive", "uno.devserver", "--mcp-app"), True),
        (("pipx", "run", "uno-devserver", "--mcp-app"), True),
        (("sh", "-c", "exec uvx uno-devserver --mcp-app"), True),
        (("/usr/bin/python3", "-m", "uno_devserver", "-v", "--mcp-app"), True),
        (("/usr/bin/python3", "-m", "uno_devserver", "--mcp-app"), False),
        (("/usr/bin/python3", "-P", "-m", "uno_devserver", "--mcp-app"), False),
        (("uvx", "uno-devserver@latest", "--mcp-app", "-l", "Debug"), False),
        (("uvx", "--prerelease=allow", "uno-devserver@1.2.3", "--mcp-app"), False),
        (("dotnet", "dnx", "uno.devserver@5.6.0", "--mcp-app"), False),
        (("dnx", "-y", "--version", "5.6.0", "uno.devserver", "--mcp-app"), False),
        (("dnx", "-y", "--version=5.6.0", "uno.devserver", "--mcp-app"), False),
        (("uno.devserver", "--mcp-app"), False),
        (("uno-devserver", "mcp", "start"), False),
        (("npx", "something", "--mcp-app"), False),
    ],
)
def test_a_way_of_its_own_has_words_that_no_definition_has(words: tuple[str, ...], own: bool) -> None:
    assert match_of(command(*words)).own_way is own


@pytest.mark.parametrize(
    ("url", "pattern", "ours"),
    [
        ("https://mcp.platform.uno/v1", r"mcp\.platform\.uno", True),
        ("HTTPS://MCP.platform.uno:443?x=1", r"mcp\.platform\.uno", True),
        ("https://mcp.platform.unofficial.org/x", r"mcp\.platform\.uno", False),
        ("https://mcp.platform.uno.evil.example/v1", r"mcp\.platform\.uno", False),
        ("https://the.mcp.platform.uno/v1", r"mcp\.platform\.uno", False),
        ("https://evil.example/mcp.platform.uno/v1", r"mcp\.platform\.uno", False),
        ("https://evil.example//mcp.platform.uno/v1", r"//mcp\.platform\.uno", False),
        ("https://evil.example/?x=mcp.platform.uno", r"mcp\.platform\.uno", False),
        ("https://evil.example#mcp.platform.uno", r"mcp\.platform\.uno", False),
        ("https://mcp.platform.uno@evil.example/v1", r"mcp\.platform\.uno", False),
        ("https://evil.example\\@mcp.platform.uno/v1", r"mcp\.platform\.uno", False),
        ("http://[::1]:5000/mcp", r"\[::1\]:\d+/mcp", True),
        ("https://any.example/my-server/mcp", "/my-server/mcp$", True),
        ("https://any.example/my-server/mcp", "my-server", False),
        ("https://any.example/my-server/mcp", "//[^/]*/my-server", True),
    ],
)
def test_a_pattern_of_addresses_matches_a_whole_host_or_a_path(url: str, pattern: str, ours: bool) -> None:
    server = UNO_DOCS.replace(detection=Detection(("^UnoDocs$",), urls=(pattern,)))

    assert bool(matches((ServerEntry("x", {"url": url}),), (server,), PLAIN)) is ours
