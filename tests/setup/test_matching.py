"""Which entries are ours, in whatever form they stand there, and what is put into them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.setup.edits.document import Entry
from uno_devserver.setup.matching import Match, definition_of, expected, matches, renewed, up_to_date, written
from uno_devserver.setup.profiles import Dialect
from uno_devserver.setup.program import program
from uno_devserver.setup.servers import Definition, Detection, Server, Wish

from .made import APP, DNX, MERGED, PLAIN, SERVERS, STABLE, UNO_APP, UNO_DOCS, URL, WISH, stdio


def _match(settings: Any, name: str = "UnoApp", dialect: Dialect = PLAIN) -> Match:
    found = matches((Entry(name, settings),), SERVERS, dialect)
    assert len(found) == 1, found
    return found[0]


def _command(*words: str) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:])}


# --- which entries -----------------------------------------------------------------------------------------------


def test_names_of_all_servers_count_before_any_content() -> None:
    entries = (Entry("UnoDocs", stdio(STABLE)), Entry("uno", {"url": URL}), Entry("other", {"url": "http://x"}))

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
        (_command("dotnet", "dnx", "-y", "uno.devserver", "--mcp-app"), PLAIN),
        (_command("C:\\tools\\uno-devserver.exe", "--mcp-app"), PLAIN),
    ],
)
def test_an_entry_under_another_name_is_known_by_its_command(settings: dict[str, Any], dialect: Dialect) -> None:
    match = _match(settings, "renamed", dialect)

    assert (match.server, match.transport, match.certain) == (UNO_APP, "stdio", True)


@pytest.mark.parametrize("key", ["url", "serverUrl", "httpUrl", "uri", "address"])
def test_an_address_is_found_under_every_name_that_clients_have_for_it(key: str) -> None:
    match = _match({key: URL}, "docs", Dialect(url_key="address"))

    assert (match.server, match.transport, match.variant) == (UNO_DOCS, "http", "stable")


def test_a_local_address_is_certain_only_under_a_name_that_says_uno() -> None:
    address = {"url": "http://localhost:5000/mcp"}

    assert _match(address, "my-uno").certain
    assert not _match(address, "figma").certain
    assert _match({"url": "http://localhost:5000/uno.devserver/mcp"}, "figma").certain


def test_of_twins_only_the_last_is_seen_by_clients() -> None:
    entries = (Entry("UnoApp", stdio(DNX)), Entry("x", stdio(STABLE)), Entry("UnoApp", None), Entry("x", {}))

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
    entry = Entry("UnoApp", settings if isinstance(settings, dict) else None)

    match = matches((entry,), SERVERS, PLAIN)[0]

    assert match.transport in ("stdio", "http", "unknown")
    assert isinstance(up_to_date(match, WISH, PLAIN), bool)
    assert written(STABLE, UNO_APP, PLAIN, match)[0]["command"] == "uvx"


@pytest.mark.parametrize(
    "settings", [None, {}, {"command": 7}, {"command": "", "args": "x"}, {"command": [[1]]}, {"args": ["--mcp-app"]}]
)
def test_an_entry_of_our_name_that_says_nothing_is_ours_and_outdated(settings: Any) -> None:
    match = _match(settings)

    assert (match.transport, match.variant, match.runner) == ("unknown", "stable", None)
    assert not up_to_date(match, WISH, PLAIN)


def test_a_costly_pattern_sees_a_bounded_text_only() -> None:
    costly = Server("Slow", "stdio", {}, Detection(keys=("^Slow$",), commands=("(x+)y.*z",)))
    long = Entry("other", {"command": "x", "args": ["x" * 10_000_000]})

    begun = time.perf_counter()
    found = matches((long,), (costly,), PLAIN)

    assert found == ()
    assert time.perf_counter() - begun < 5  # without the bound: hours


# --- what they say -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "variant"),
    [
        (("uno-devserver", "--mcp-app"), "stable"),
        (("uno-devserver@latest", "--mcp-app"), "stable"),
        (("uno-devserver@1.2.3", "--mcp-app"), "pinned:1.2.3"),
        (("--from", "uno-devserver==1.2.3", "uno-devserver", "--mcp-app"), "pinned:1.2.3"),
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
    assert _match(_command("uvx", *args)).variant == variant


def test_an_address_for_a_server_that_is_started_is_the_old_way() -> None:
    assert _match({"url": "http://localhost:5000/mcp"}).variant == "legacy-http"
    assert _match({"url": "https://example.com"}).variant == "legacy-http"


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
        (("npx", "something"), None),
        (("uvx", "something", "--else"), None),
    ],
)
def test_the_runner_is_known_by_its_program(words: tuple[str, ...], runner: str | None) -> None:
    assert _match(_command(*words)).runner == runner


# --- whether that is current ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "variant", "current"),
    [
        (("uvx", "uno-devserver", "--mcp-app"), "stable", True),
        (("dnx", "-y", "uno.devserver", "--mcp-app"), "stable", True),
        (("dotnet", "dnx", "-y", "uno.devserver", "--mcp-app"), "stable", True),
        (("/there/uvx", "uno-devserver", "--mcp-app"), "stable", True),
        (("/gone/uvx", "uno-devserver", "--mcp-app"), "stable", False),
        (("uvx", "uno-devserver", "--mcp-app", "--solution-dir", "x", "--", "npx", "y"), "stable", True),
        (("uvx", "uno-devserver", "--port", "1", "--mcp-app"), "stable", False),
        (("uvx", "uno-devserver", "--mcp-app"), "prerelease", False),
        (("uvx", "--prerelease", "allow", "uno-devserver", "--mcp-app"), "prerelease", True),
        (("dnx", "-y", "--prerelease", "uno.devserver", "--mcp-app"), "prerelease", True),
        (("uvx", "uno-devserver@1.2", "--mcp-app"), "pinned:1.2", True),
        (("uvx", "uno-devserver@1.2", "--mcp-app"), "pinned:1.3", False),
        (("dnx", "-y", "--version", "1.2", "uno.devserver", "--mcp-app"), "pinned:1.2", True),
        (("uno-devserver", "mcp", "start"), "stable", False),
    ],
)
def test_without_a_wished_runner_the_form_of_any_is_current(
    words: tuple[str, ...], variant: str, current: bool
) -> None:
    match = _match(_command(*words))

    assert up_to_date(match, Wish(variant), PLAIN, lambda path: path.startswith("/there/")) is current


@pytest.mark.parametrize(
    ("words", "current"),
    [
        (("uno-devserver", "--mcp-app"), True),
        (("/there/uno-devserver", "--mcp-app", "-l", "Debug"), True),
        (("/gone/uno-devserver", "--mcp-app"), False),
        (("/there/python3", "-m", "uno_devserver", "--mcp-app"), True),
        (("/there/python3", "-m", "uno_devserver", "-x", "--mcp-app"), False),
    ],
)
def test_a_path_is_current_unless_a_version_was_asked_for_which_it_cannot_say(
    words: tuple[str, ...], current: bool
) -> None:
    match = _match(_command(*words))

    for wish, is_current in ((Wish("prerelease", asked=False), current), (Wish("prerelease"), False)):
        assert up_to_date(match, wish, PLAIN, lambda path: path.startswith("/there/")) is is_current
    assert renewed(match, Wish("pinned:1.2")).args[:2] == ("uno-devserver@1.2", "--mcp-app")
    assert renewed(match, Wish("stable", asked=False)).command == program()[0]


@pytest.mark.parametrize("more", [("--prerelease",), ("--version", "1.2"), ()])
def test_this_programs_own_version_says_nothing_about_another_program(more: tuple[str, ...]) -> None:
    other = _match(_command("dnx", "-y", *more, "uno.devserver", "--mcp-app"))
    odd = _match(_command("dnx", *more, "uno.devserver", "--mcp-app"))

    for variant in ("stable", "prerelease"):
        assert up_to_date(other, Wish(variant, asked=False), PLAIN)
        assert renewed(odd, Wish(variant, asked=False)).args == other.says.args
    assert not up_to_date(other, Wish("pinned:3.4"), PLAIN)
    assert not up_to_date(_match(_command("uvx", "uno-devserver@1.2", "--mcp-app")), Wish("stable", asked=False), PLAIN)


@pytest.mark.parametrize("users", [("--wait-calls",), ("-l", "Debug"), ("--", "npx", "@x/y@1.2", "--mcp-app")])
def test_what_the_user_put_behind_our_arguments_stays(users: tuple[str, ...]) -> None:
    match = _match(_command("uvx", "uno-devserver", "--mcp-app", *users))

    assert match.variant == "stable"
    assert renewed(match, Wish("pinned:3")).args == ("uno-devserver@3", "--mcp-app", *users)
    assert renewed(match, Wish("stable", "dnx")).args == (*DNX.args, *users)


def test_with_a_wished_runner_only_its_form_is_current() -> None:
    uvx, dnx, bare = _match(stdio(STABLE)), _match(stdio(DNX)), _match(_command("uno-devserver", "--mcp-app"))
    here = _match(_command(*program(), *APP))

    def current(runner: str) -> list[bool]:
        return [up_to_date(match, Wish("stable", runner), PLAIN) for match in (uvx, dnx, bare, here)]

    assert current("uvx") == [True, False, False, False]
    assert current("dnx") == [False, True, False, False]
    assert current("path") == [False, False, False, True]


def test_the_dialect_and_what_the_user_added_do_not_matter() -> None:
    merged = {"type": "local", "command": ["uvx", "uno-devserver", "--mcp-app"], "enabled": True}
    added = {**stdio(STABLE), "env": {"A": "1"}, "disabled": False}

    assert up_to_date(_match(merged, dialect=MERGED), WISH, MERGED)
    assert up_to_date(_match(added), WISH, PLAIN)


def test_a_command_of_the_wrong_kind_is_not_current_because_the_client_does_not_take_it() -> None:
    merged = {"command": ["uvx", "uno-devserver", "--mcp-app"]}

    assert not up_to_date(_match(merged), WISH, PLAIN)
    assert not up_to_date(_match(stdio(STABLE), dialect=MERGED), WISH, MERGED)


def test_an_address_is_current_when_it_is_the_same_whatever_the_variant() -> None:
    assert up_to_date(_match({"serverUrl": URL}, "UnoDocs"), Wish("pinned:1.0", "uvx"), PLAIN)
    assert not up_to_date(_match({"url": URL + "0"}, "UnoDocs"), WISH, PLAIN)


def test_an_address_without_the_type_that_its_client_needs_is_outdated() -> None:
    needs, may_have = Dialect(types={"http": "http"}), Dialect(types={"stdio": "stdio", "http": "http"})
    bare = _match({"url": URL}, "UnoDocs")

    assert not up_to_date(bare, WISH, needs)
    assert up_to_date(bare, WISH, may_have)
    assert up_to_date(_match({"url": URL, "type": "streamable-http"}, "UnoDocs"), WISH, needs)


def test_a_server_that_is_started_by_one_thing_has_no_runners() -> None:
    seed = Server("UnoApp", "stdio", {"stable": DNX}, Detection(keys=("^UnoApp$",)))
    match = matches((Entry("UnoApp", stdio(DNX)),), (seed,), PLAIN)[0]

    assert up_to_date(match, WISH, PLAIN)
    assert match.runner is None
    assert expected(seed, Wish("prerelease", "uvx")) == DNX


# --- what they should say -------------------------------------------------------------------------------------------


def test_the_version_stands_wherever_a_definition_asks_for_it() -> None:
    wish = Wish("pinned:1.2.3")

    assert expected(UNO_APP, wish).args == ("uno-devserver@1.2.3", "--mcp-app")
    assert expected(UNO_APP, wish, "dnx").args == ("-y", "--version", "1.2.3", "uno.devserver", "--mcp-app")
    assert expected(UNO_APP, Wish("stable", "dnx")) == DNX
    assert expected(UNO_APP, Wish("stable", "dnx"), "uvx") == STABLE


def test_this_program_is_named_by_its_path() -> None:
    found = expected(UNO_APP, WISH, "path")

    assert (found.command, *found.args) == (*program(), "--mcp-app")


def test_a_new_entry_has_the_dialects_names_type_and_additions() -> None:
    goose = Dialect(
        "cmd", "args", "envs", "uri", types={"stdio": "stdio"}, extra={"stdio": {"name": "{name}", "enabled": True}}
    )
    definition = STABLE.replace(env={"A": "1"})

    settings, drop = written(definition, UNO_APP, goose)

    assert settings == {
        "type": "stdio",
        "cmd": "uvx",
        "args": ["uno-devserver", "--mcp-app"],
        "envs": {"A": "1"},
        "name": "UnoApp",
        "enabled": True,
    }
    assert "uri" in drop
    assert "httpUrl" in written(Definition(url=URL), UNO_DOCS, Dialect(url_key="serverUrl"))[1]
    assert list(written(Definition(url=URL), UNO_DOCS, MERGED)[0].items()) == [("type", "remote"), ("url", URL)]
    assert written(STABLE, UNO_APP, MERGED)[0]["command"] == ["uvx", "uno-devserver", "--mcp-app"]


def test_an_entry_that_was_there_keeps_what_the_user_added() -> None:
    mine = {**stdio(DNX), "env": {"A": "1"}, "cwd": "/x", "headers": {}, "type": "stdio", "disabled": True}

    settings, drop = written(STABLE.replace(env={"B": "2"}), UNO_APP, PLAIN, _match(mine))

    assert settings == {**stdio(STABLE), "env": {"A": "1", "B": "2"}}
    assert set(drop).isdisjoint({"cwd", "headers", "type", "disabled"})


def test_a_change_of_transport_takes_what_belongs_to_the_other() -> None:
    legacy = _match({"type": "http", "url": "http://localhost:1/mcp", "headers": {"a": "b"}, "cwd": "/x"})
    bridged = _match({"type": "stdio", "command": "npx", "args": ["mcp-remote"], "env": {}, "cwd": "/x"}, "UnoDocs")

    _, from_http = written(STABLE, UNO_APP, PLAIN, legacy)
    settings, from_stdio = written(Definition(url=URL), UNO_DOCS, PLAIN, bridged)

    assert {"url", "serverUrl", "httpUrl", "uri", "headers", "type"} <= set(from_http)
    assert {"command", "args", "env", "cwd", "type"} <= set(from_stdio)
    assert set(from_http).isdisjoint({"command", "args", "env", "cwd"})
    assert settings == {"url": URL}


def test_a_nested_transport_makes_room_for_the_flat_form() -> None:
    nested = _match({"transport": {"type": "stdio", **stdio(DNX)}, "disabled": False})

    settings, drop = written(STABLE, UNO_APP, PLAIN, nested)

    assert settings == stdio(STABLE)
    assert "transport" in drop


def test_an_array_of_program_and_arguments_leaves_no_second_list_beside_it() -> None:
    settings, drop = written(STABLE, UNO_APP, MERGED, _match(stdio(DNX)))

    assert settings == {"type": "local", "command": ["uvx", "uno-devserver", "--mcp-app"]}
    assert "args" in drop


def test_the_environment_is_read_by_the_dialects_name_first() -> None:
    entry = Entry("x", {"command": "a", "env": {"A": "1"}, "environment": {"B": "2", "C": 3}})

    assert definition_of(entry, MERGED).env == {"B": "2"}
    assert definition_of(entry, PLAIN).env == {"A": "1"}
