"""What is read from an entry, and put into it, in the words of its client."""

from __future__ import annotations

from uno_devserver.setup.edits.document import ServerEntry
from uno_devserver.setup.entry_format import settings_for, spec_of
from uno_devserver.setup.profiles import Dialect
from uno_devserver.setup.server_definition import EntrySpec

from .made import DNX, MERGED, PLAIN, STABLE, UNO_APP, UNO_DOCS, URL, match_of, stdio


def test_a_new_entry_has_the_dialects_names_type_and_additions() -> None:
    goose = Dialect(
        "cmd", "args", "envs", "uri", types={"stdio": "stdio"}, extra={"stdio": {"name": "{name}", "enabled": True}}
    )
    definition = STABLE.replace(env={"A": "1"})

    settings, drop = settings_for(definition, UNO_APP, goose)

    assert settings == {
        "type": "stdio",
        "cmd": "uvx",
        "args": [*STABLE.args],
        "envs": {"A": "1"},
        "name": "UnoApp",
        "enabled": True,
    }
    assert "uri" in drop
    assert "httpUrl" in settings_for(EntrySpec(url=URL), UNO_DOCS, Dialect(url_key="serverUrl"))[1]
    assert list(settings_for(EntrySpec(url=URL), UNO_DOCS, MERGED)[0].items()) == [("type", "remote"), ("url", URL)]
    assert settings_for(STABLE, UNO_APP, MERGED)[0]["command"] == ["uvx", *STABLE.args]


def test_an_entry_that_was_there_keeps_what_the_user_added() -> None:
    mine = {**stdio(DNX), "env": {"A": "1"}, "cwd": "/x", "headers": {}, "type": "stdio", "disabled": True}

    settings, drop = settings_for(STABLE.replace(env={"B": "2"}), UNO_APP, PLAIN, match_of(mine))

    assert settings == {**stdio(STABLE), "env": {"A": "1", "B": "2"}}
    assert set(drop).isdisjoint({"cwd", "headers", "type", "disabled"})


def test_a_change_of_transport_takes_what_belongs_to_the_other() -> None:
    legacy = match_of({"type": "http", "url": "http://localhost:1/mcp", "headers": {"a": "b"}, "cwd": "/x"})
    bridged = match_of({"type": "stdio", "command": "npx", "args": ["mcp-remote"], "env": {}, "cwd": "/x"}, "UnoDocs")

    _, from_http = settings_for(STABLE, UNO_APP, PLAIN, legacy)
    settings, from_stdio = settings_for(EntrySpec(url=URL), UNO_DOCS, PLAIN, bridged)

    assert {"url", "serverUrl", "httpUrl", "uri", "headers", "type"} <= set(from_http)
    assert {"command", "args", "env", "cwd", "type"} <= set(from_stdio)
    assert set(from_http).isdisjoint({"command", "args", "env", "cwd"})
    assert settings == {"url": URL}


def test_a_nested_transport_makes_room_for_the_flat_form() -> None:
    nested = match_of({"transport": {"type": "stdio", **stdio(DNX)}, "disabled": False})

    settings, drop = settings_for(STABLE, UNO_APP, PLAIN, nested)

    assert settings == stdio(STABLE)
    assert "transport" in drop


def test_an_array_of_program_and_arguments_leaves_no_second_list_beside_it() -> None:
    settings, drop = settings_for(STABLE, UNO_APP, MERGED, match_of(stdio(DNX)))

    assert settings == {"type": "local", "command": ["uvx", *STABLE.args]}
    assert "args" in drop


def test_the_environment_is_read_by_the_dialects_name_first() -> None:
    entry = ServerEntry("x", {"command": "a", "env": {"A": "1"}, "environment": {"B": "2", "C": 3}})

    assert spec_of(entry, MERGED).env == {"B": "2"}
    assert spec_of(entry, PLAIN).env == {"A": "1"}
