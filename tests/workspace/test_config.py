"""host.config.jsonc: what counts of it, and what is said about what does not."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.files import write
from uno_devserver.issues import REMEDIES, Issue
from uno_devserver.workspace.config import (
    FIELDS,
    MAKE_READABLE,
    ClientCommand,
    Config,
    HotReloadSettings,
    InspectorSettings,
    ServerCommand,
    Strategy,
    ToolFilter,
    read_config,
    split_command,
)
from uno_devserver.workspace.server_command import file_variables


def _read(tmp_path: Path, content: str | bytes) -> Config:
    return read_config(str(write(tmp_path / ".devtools" / "host.config.jsonc", content)))


def _complaints(config: Config) -> list[str]:
    """Without the path of the file."""
    return [issue.message.removeprefix(config.path or "") for issue in config.issues]


def test_without_a_config_the_defaults_count(tmp_path: Path) -> None:
    assert read_config(None) == Config()
    assert read_config(str(tmp_path / "gone.jsonc")) == Config()
    assert not Config().names_server


def test_an_empty_config_is_one_with_the_defaults(tmp_path: Path) -> None:
    assert _read(tmp_path, "{}") == Config(path=str(tmp_path / ".devtools" / "host.config.jsonc"))


@pytest.mark.parametrize(
    ("content", "wait_calls"),
    [
        ('{"proxy": {"waitCalls": true}}', True),
        ('{"proxy": {"waitCalls": false}}', False),
        ('{"proxy": {}}', False),
        ('// mine\n{"proxy": {"waitCalls": true, /* later */ },}', True),
        ('\ufeff{"proxy": {"waitCalls": true}}', True),
    ],
)
def test_calls_wait_where_the_config_says_so(tmp_path: Path, content: str, wait_calls: bool) -> None:
    config = _read(tmp_path, content)

    assert (config.wait_calls, config.issues) == (wait_calls, ())


def test_every_field_is_read_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    for folder in ("app", "extension", "server", "server/run"):
        (tmp_path / folder).mkdir()
    write(tmp_path / "server" / "package.json", "{}")

    config = _read(
        tmp_path,
        """{
          "$schema": "./host.config.schema.json",
          "clientWorkspace": "../app",
          "extensionPath": "../extension",
          "mcpServerRoot": "../server",
          "mcpServer": {
            "command": "node", "args": ["a", ""], "env": {"A": "1", "B": ""}, "cwd": "../server/run",
            "envFile": "../.env", "url": "http://localhost:8000/mcp", "headers": {"X-Key": "${A}"},
            "build": "make 'all of it'",
            "startupTimeout": 1, "silenceTimeout": 86400000, "standby": false,
          },
          "client": {"command": "code", "args": ["."], "cwd": "../app", "readyPattern": "ready|go"},
          "hotReload": {
            "enabled": false, "mcpServerName": "mine", "restartDelay": 2000, "mcpStatusTimeout": 1,
            "strategy": "swap", "include": ["data/*.json"], "exclude": ["**/*.test.ts"], "watch": ["*"],
          },
          "tools": {"include": ["get_*"], "exclude": ["get_all"]},
          "pipeline": {"concurrency": 8},
          "proxy": {"waitCalls": true},
          "inspector": {"enabled": true, "port": 7000},
        }""",
    )

    assert config == Config(
        path=f"{tmp_path}/.devtools/host.config.jsonc",
        wait_calls=True,
        concurrency=8,
        client_workspace=f"{tmp_path}/app",
        extension_path=f"{tmp_path}/extension",
        server_root=f"{tmp_path}/server",
        server=ServerCommand(
            "node",
            ("a", ""),
            (("A", "1"), ("B", "")),
            f"{tmp_path}/server/run",
            f"{tmp_path}/.env",
            "http://localhost:8000/mcp",
            (("X-Key", "${A}"),),
            ("make", "all of it"),
            1,
            86_400_000,
        ),
        client=ClientCommand("code", (".",), f"{tmp_path}/app", "ready|go"),
        hot_reload=HotReloadSettings(
            False, "mine", 2000, 1, Strategy.SWAP, ("data/*.json",), ("**/*.test.ts",), ("*",)
        ),
        tools=ToolFilter(("get_*",), ("get_all",)),
        inspector=InspectorSettings(True, 7000),
        given=frozenset(field.title for field in FIELDS),
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"proxy": {"waitCalls": 1}}', ":1:25: proxy.waitCalls: it must be true or false."),
        ('{"proxy": {"waitCalls": "true"}}', ":1:25: proxy.waitCalls: it must be true or false."),
        ('{"proxy": {"waitCalls": null}}', ":1:25: proxy.waitCalls: it must be true or false."),
        ('{"inspector": true}', ":1:15: inspector: it must be an object."),
        ('{"inspector": {"port": 65536}}', ":1:24: inspector.port: it must be a whole number from 0 to 65535."),
        ('{"inspector": {"port": "6274"}}', ":1:24: inspector.port: it must be a whole number from 0 to 65535."),
        ('{"proxy": []}', ":1:11: proxy: it must be an object."),
        ("[]", ": it must be an object."),
        ("null", ": it must be an object."),
        (
            '{\n // slow\n "hotReload": {"restartDelay": -1}}',
            ":3:32: hotReload.restartDelay: it must be a whole number of milliseconds from 0 to 600000.",
        ),
        (
            '{"hotReload": {"mcpStatusTimeout": 0}}',
            ":1:36: hotReload.mcpStatusTimeout: it must be a whole number of milliseconds from 1 to 3600000.",
        ),
        (
            '{"hotReload": {"restartDelay": true}}',
            ":1:32: hotReload.restartDelay: it must be a whole number of milliseconds from 0 to 600000.",
        ),
        ('{"pipeline": {"concurrency": 0}}', ":1:30: pipeline.concurrency: it must be a whole number from 1 to 1024."),
        ('{"hotReload": {"strategy": "swop"}}', ':1:28: hotReload.strategy: it must be "restart" or "swap".'),
        ('{"hotReload": {"include": "*.ts"}}', ":1:27: hotReload.include: it must be a list of texts."),
        ('{"hotReload": {"exclude": [1]}}', ":1:27: hotReload.exclude: it must be a list of texts."),
        ('{"hotReload": {"mcpServerName": ""}}', ":1:33: hotReload.mcpServerName: it must be a text."),
        ('{"mcpServer": {"command": " "}}', ":1:27: mcpServer.command: it must be the name or path of a program."),
        ('{"mcpServer": {"env": {"A": 1}}}', ":1:23: mcpServer.env: it must be an object of texts."),
        ('{"mcpServer": {"env": {"": "a"}}}', ":1:23: mcpServer.env: it must be an object of texts."),
        ('{"mcpServer": {"env": {"A=B": ""}}}', ":1:23: mcpServer.env: it must be an object of texts."),
        ('{"mcpServer": {"args": ["a\\u0000"]}}', ":1:24: mcpServer.args: it must be a list of texts."),
        ('{"mcpServer": {"args": ["\\ud83d"]}}', ":1:24: mcpServer.args: it must be a list of texts."),
        ('{"mcpServer": {"env": {"A": "\\ud83d"}}}', ":1:23: mcpServer.env: it must be an object of texts."),
        *(
            (
                f'{{"mcpServer": {{"url": "{url}"}}}}',
                ':1:23: mcpServer.url: it must be a URL, such as "http://localhost:8000/mcp".',
            )
            for url in (
                "localhost:8000",
                "ftp://example.com/mcp",
                "http://localhost:0/mcp",
                "http://localhost:65536/mcp",
                "http://u:p@localhost/mcp",
                "https://u@example.com/mcp",
            )
        ),
        *(
            (
                f'{{"mcpServer": {{"url": "{url}", "build": false}}}}',
                (
                    ':1:23: mcpServer.url: it must be a URL of this machine, such as "http://localhost:8000/mcp": '
                    "the server is started here."
                ),
            )
            for url in (
                "http://example.com/mcp",
                "http://127.0.0.1.example.com/",
                "https://localhost/mcp",
                "http://10.0.0.1/mcp",
            )
        ),
        *(
            (
                f'{{"mcpServer": {{"headers": {headers}}}}}',
                ":1:27: mcpServer.headers: it must be an object of texts, by the names of HTTP headers.",
            )
            for headers in ('{"A": 1}', '{"A B": "x"}', '{"": "x"}', '["A: x"]', '{"A": "\\ud83d"}')
        ),
        (
            '{"mcpServer": {"headers": {"A": "x"}}}',
            ":1:27: mcpServer.headers: they are sent to mcpServer.url, which is not given.",
        ),
        *(
            (f'{{"mcpServer": {{"build": {build}}}}}', f":1:25: mcpServer.build: {problem}.")
            for build, problem in (
                ("true", "it must be a command line, a list of texts, or false"),
                ("[1]", "it must be a command line, a list of texts, or false"),
                ("[]", "it must be a command line, a list of texts, or false, and name a program first"),
                ("\"'' a\"", "it must be a command line, a list of texts, or false, and name a program first"),
                ('"make \'a"', "it must be a command line, a list of texts, or false: no closing quotation"),
                (
                    '"a && b"',
                    "it has '&&', but no shell is involved: put the commands into a script, and name that",
                ),
            )
        ),
        (
            '{"mcpServer": {"startupTimeout": 0}}',
            ":1:34: mcpServer.startupTimeout: it must be a whole number of milliseconds from 1 to 3600000.",
        ),
        (
            '{"mcpServer": {"silenceTimeout": "5s"}}',
            ":1:34: mcpServer.silenceTimeout: it must be a whole number of milliseconds from 1 to 86400000.",
        ),
        ('{"mcpServerRoot": "\\ud83d"}', ":1:19: mcpServerRoot: it must be a folder."),
        ('{"mcpServerRoot": 5}', ":1:19: mcpServerRoot: it must be a folder."),
        ('{"client": {"args": []}}', ":1:12: client: it needs a command, and is left out until it has one."),
        (
            '{"client": {"command": "x", "readyPattern": "("}}',
            (
                ":1:45: client.readyPattern: it must be a regular expression: "
                "missing ), unterminated subpattern at position 0."
            ),
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_place_and_the_default_counts(
    tmp_path: Path, content: str, complaint: str
) -> None:
    config = _read(tmp_path, content)

    (issue,) = config.issues
    assert _complaints(config) == [complaint]
    step = REMEDIES["ConfigInvalid"] if config.readable else MAKE_READABLE
    assert (issue.code, issue.fatal, issue.remediation) == ("ConfigInvalid", False, step)
    assert (config.hot_reload, config.concurrency, config.wait_calls) == (HotReloadSettings(), None, False)
    assert config.given <= {"client.args", "client.command", "mcpServer.build", "mcpServer.headers"}


@pytest.mark.parametrize("url", ["http://localhost/mcp", "http://127.0.0.2:80", "HTTP://[::1]:65535/a?b=c"])
def test_urls_of_this_machine_are_accepted(tmp_path: Path, url: str) -> None:
    config = _read(tmp_path, json.dumps({"mcpServer": {"url": url}}))

    assert (config.issues, config.server and config.server.url) == ((), url)


@pytest.mark.parametrize(
    ("server", "connects_only"),
    [
        ({"url": "https://example.com/mcp", "headers": {"X-Key": "${KEY}"}, "env": {"KEY": "a"}}, True),
        ({"url": "http://localhost:8000/mcp"}, True),
        ({"url": "http://localhost:8000/mcp", "command": "node"}, False),
        ({"url": "http://localhost:8000/mcp", "args": ["a"]}, False),
        ({"url": "http://localhost:8000/mcp", "build": False}, False),
        ({"command": "node"}, False),
    ],
)
def test_a_server_of_which_only_the_url_is_given_is_connected_to(
    tmp_path: Path, server: dict[str, object], connects_only: bool
) -> None:
    config = _read(tmp_path, json.dumps({"mcpServer": server}))

    assert (config.issues, config.connects_only) == ((), connects_only)


def test_a_server_of_a_root_is_started_and_listens_at_its_url(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")

    config = _read(tmp_path, '{"mcpServerRoot": "..", "mcpServer": {"url": "http://localhost:8000/mcp"}}')

    assert (config.issues, config.connects_only) == ((), False)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (False, ()),
        (["go", "build", "&&"], ("go", "build", "&&")),
        ('go build -ldflags "-s -w" ./cmd', ("go", "build", "-ldflags", "-s -w", "./cmd")),
        ("make a\\ b # no comment", ("make", "a b", "#", "no", "comment")),
    ],
)
def test_a_build_is_a_command_line_a_list_or_false(tmp_path: Path, build: object, words: tuple[str, ...]) -> None:
    config = _read(tmp_path, json.dumps({"mcpServer": {"build": build}}))

    assert (config.issues, config.server and config.server.build) == ((), words)


def test_on_windows_a_backslash_of_a_command_line_belongs_to_a_path() -> None:
    assert split_command(r"tools\build.cmd 'a b\c'", "win32") == (r"tools\build.cmd", r"a b\c")


def test_limits_count_only_where_the_config_gives_them(tmp_path: Path) -> None:
    given = _read(tmp_path, '{"mcpServer": {"startupTimeout": 1500, "silenceTimeout": 250}}')

    assert (given.startup_seconds, given.silence_seconds) == (1.5, 0.25)
    without = _read(tmp_path, '{"mcpServer": {}}')
    assert (without.startup_seconds, without.silence_seconds) == (None, None)


@pytest.mark.parametrize("path", ["../../.env", "/etc/environment"])
def test_a_file_of_variables_outside_of_the_workspace_is_told_and_no_server_starts_without_it(
    tmp_path: Path, path: str
) -> None:
    _assert_file_of_variables_is_outside(tmp_path / "ws", path)


def test_a_file_of_variables_behind_a_link_that_leads_out_is_told_as_well(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "link").symlink_to(tmp_path)

    _assert_file_of_variables_is_outside(tmp_path / "ws", "../link/.env")


def _assert_file_of_variables_is_outside(workspace: Path, path: str) -> None:
    workspace.mkdir(exist_ok=True)

    config = _read(workspace, json.dumps({"mcpServer": {"envFile": path}}))

    (complaint,) = _complaints(config)
    assert complaint.startswith(":1:27: mcpServer.envFile: ")
    assert f"is not inside the workspace {workspace}; paths are relative to {workspace / '.devtools'}." in complaint
    assert isinstance(refused := file_variables(config), Issue)
    assert refused.message.endswith("leads out of the workspace.")


def test_unknown_settings_are_named_with_what_was_probably_meant(tmp_path: Path) -> None:
    config = _read(
        tmp_path, '{\n  "mcpserverRoot": "..",\n  "hotReload": {"restart_delay": 5, "colour": 1},\n  "hotreload": {}\n}'
    )

    assert _complaints(config) == [
        ":2:3: mcpserverRoot: there is no such setting; did you mean 'mcpServerRoot'?",
        ":3:17: hotReload.restart_delay: there is no such setting; did you mean 'restartDelay'?",
        ":3:37: hotReload.colour: there is no such setting.",
        ":4:3: hotreload: there is no such setting; did you mean 'hotReload'?",
    ]


@pytest.mark.parametrize(
    ("document", "meant"),
    [
        ({"concurrency": 1}, ["pipeline.concurrency"]),
        ({"mcpServer": {"waitCalls": True}}, ["proxy.waitCalls"]),
        ({"timeout": 1}, ["mcpServer.startupTimeout", "mcpServer.silenceTimeout", "hotReload.mcpStatusTimeout"]),
    ],
)
def test_a_setting_in_the_wrong_section_is_told_where_it_belongs(
    tmp_path: Path, document: dict[str, object], meant: list[str]
) -> None:
    (complaint,) = _complaints(_read(tmp_path, json.dumps(document)))

    assert complaint.endswith(f"there is no such setting; did you mean {' or '.join(map(repr, meant))}?")


def test_a_file_of_strangers_leads_to_a_bounded_list(tmp_path: Path) -> None:
    config = _read(tmp_path, json.dumps({"x" * 1000 + str(number): 1 for number in range(500)}))

    assert len(config.issues) == 20
    assert all(len(issue.message) < 300 for issue in config.issues)


@pytest.mark.parametrize("key", ["clientWorkspace", "extensionPath"])
def test_a_folder_that_does_not_exist_is_named_by_its_full_path(tmp_path: Path, key: str) -> None:
    config = _read(tmp_path, f'{{"{key}": "../gone"}}')

    (complaint,) = _complaints(config)
    assert f"{key}: there is no folder {tmp_path}/gone; paths are relative to {tmp_path}/.devtools." in complaint
    assert (config.client_workspace, config.extension_path) == (None, None)


@pytest.mark.parametrize(("named", "meant"), [("../src/Moon.csproj", "../src"), ("package.json", ".")])
def test_a_file_in_the_place_of_a_folder_is_named_with_its_folder(tmp_path: Path, named: str, meant: str) -> None:
    file = write(Path(os.path.normpath(tmp_path / ".devtools" / named)), "")

    config = _read(tmp_path, json.dumps({"mcpServerRoot": named}))

    (complaint,) = _complaints(config)
    assert f'mcpServerRoot: {named} is a file, and its folder is used; write "{meant}".' in complaint
    assert config.server_root == str(file.parent)


def test_a_server_whose_folder_is_missing_is_not_replaced_by_a_host(tmp_path: Path) -> None:
    config = _read(tmp_path, '{"mcpServerRoot": "../gone"}')

    assert len(config.issues) == 1
    assert (config.names_server, config.server_root) == (True, f"{tmp_path}/gone")


@pytest.mark.parametrize("pattern", ["a{99999999999999999999}", "(" * 5000 + ")" * 5000])
def test_a_pattern_that_is_too_much_for_python_is_told(tmp_path: Path, pattern: str) -> None:
    config = _read(tmp_path, json.dumps({"client": {"command": "x", "readyPattern": pattern}}))

    (complaint,) = _complaints(config)
    assert "client.readyPattern: it must be a regular expression" in complaint
    assert config.client == ClientCommand("x")


def test_a_root_without_a_package_is_fine_where_the_config_says_what_counts(tmp_path: Path) -> None:
    config = _read(tmp_path, '{"mcpServerRoot": "..", "hotReload": {"include": ["**/*.go"]}}')

    assert config.issues == ()


def test_a_root_without_a_package_is_fine_where_the_config_has_the_command(tmp_path: Path) -> None:
    assert _read(tmp_path, '{"mcpServerRoot": "..", "mcpServer": {"command": "bin/server"}}').issues == ()


def test_a_root_without_a_package_is_told_what_paths_are_relative_to(tmp_path: Path) -> None:
    here, above = _read(tmp_path, '{"mcpServerRoot": "."}'), _read(tmp_path, '{"mcpServerRoot": ".."}')

    (complaint,), (other,) = _complaints(here), _complaints(above)
    assert f"the folder {tmp_path}/.devtools has no package.json" in complaint
    assert f"paths are relative to the folder of this file, so '..' is {tmp_path}." in complaint
    assert other.endswith("paths are relative to the folder of this file.")


@pytest.mark.parametrize("name", ["package.json", "pyproject.toml", "Server.csproj", "server.py"])
def test_a_root_with_a_package_is_none_to_complain_about(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, "")

    assert _read(tmp_path, '{"mcpServerRoot": ".."}').issues == ()


@pytest.mark.parametrize(
    ("content", "folder"),
    [
        ('{"mcpServer": {}}', ""),
        ('{"mcpServer": {"command": "x"}}', ""),
        ('{"mcpServer": {"command": "x", "cwd": "../run"}}', "/run"),
        ('{"mcpServer": {"command": "x", "cwd": "../run"}, "mcpServerRoot": "../code"}', "/code"),
    ],
)
def test_the_code_of_a_server_is_in_its_root_else_where_it_runs_else_in_the_workspace(
    tmp_path: Path, content: str, folder: str
) -> None:
    assert _read(tmp_path, content).server_folder == f"{tmp_path}{folder}"


def test_a_broken_file_is_reported_with_line_and_column_and_nothing_of_it_is_known(tmp_path: Path) -> None:
    config = _read(tmp_path, '{\n  "proxy": {"waitCalls": tru }\n}')

    assert _complaints(config) == [":2:26: this is not valid JSON: Expecting value."]
    assert (config.readable, config.wait_calls, config.server_folder) == (False, False, None)


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


@pytest.mark.parametrize("linked", [".devtools", ".devtools/host.config.jsonc"])
def test_a_config_that_is_a_link_out_of_the_workspace_is_not_read(tmp_path: Path, linked: str) -> None:
    secret = write(tmp_path / "home" / "host.config.jsonc", '{"password_of_production": 1}')
    place = tmp_path / "ws" / linked
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(secret.parent if linked == ".devtools" else secret)

    config = read_config(str(tmp_path / "ws" / ".devtools" / "host.config.jsonc"))

    assert not config.readable
    assert "leads out of the workspace" in config.issues[0].message
    assert "password" not in str(config.issues)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
SETTINGS = st.dictionaries(st.sampled_from([field.key for field in FIELDS]), VALUES, max_size=2)


@given(
    st.dictionaries(st.sampled_from([field.section or field.key for field in FIELDS]), SETTINGS | VALUES, max_size=5)
)
def test_any_value_of_any_field_counts_or_is_complained_about(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, object]
) -> None:
    path = tmp_path_factory.getbasetemp() / "some.jsonc"
    path.write_text(json.dumps(document))

    config = read_config(str(path))

    given_there = {
        field.title
        for field in FIELDS
        if field.key in (document if not field.section else _object(document.get(field.section)))
    }
    complained = {message.split(": ")[1] for message in _complaints(config)}
    assert given_there <= config.given | complained


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


@given(st.binary(max_size=200))
def test_any_content_gives_a_config(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonc"
    path.write_bytes(content)

    assert isinstance(read_config(str(path)).wait_calls, bool)


def test_a_file_of_nothing_but_unknown_settings_is_read_in_a_moment(tmp_path: Path) -> None:
    content = json.dumps({f"unknown{number}": number for number in range(30_000)})
    begin = time.process_time()

    config = _read(tmp_path, content)

    assert len(config.issues) == 20
    assert time.process_time() - begin < 3  # with a guess and a search for each it took half a minute


# Several servers.


def test_each_entry_of_servers_is_a_config_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "weather" / "package.json", "{}")

    config = _read(
        tmp_path,
        """{"proxy": {"waitCalls": true}, "servers": {
          "weather": {"root": "../weather", "startupTimeout": 5, "hotReload": {"strategy": "swap"}, "prefix": true,
                      "pipeline": {"concurrency": 2}, "tools": {"exclude": ["x*"]}},
          "docs": {"url": "https://example.com/mcp", "headers": {"X": "${Y}"}},
          "off": {"command": "node", "args": ["a.js"], "env": {"A": "1"}, "enabled": false},
        }}""",
    )

    assert config.issues == ()
    assert (config.names_server, [entry.name for entry in config.servers]) == (False, ["weather", "docs", "off"])
    weather, docs, off = (config.entry(name) for name in ("weather", "docs", "off"))
    limits = (weather.startup_seconds, weather.concurrency)
    assert (weather.server_folder, *limits) == (str(tmp_path / "weather"), 0.005, 2)
    assert (weather.hot_reload.strategy, weather.hot_reload.server_name) == (Strategy.SWAP, "weather")
    assert (weather.prefix, weather.tools.allows("x1"), weather.tools.allows("y")) == (True, False, True)
    assert (weather.wait_calls, weather.section, weather.connects_only) == (True, "servers.weather", False)
    assert (docs.connects_only, docs.server and docs.server.headers) == (True, (("X", "${Y}"),))
    assert (off.enabled, off.server and (off.server.command, off.server.args)) == (False, ("node", ("a.js",)))
    assert read_config(config.path, "docs") == docs
    assert not config.entry("unknown").names_server


@pytest.mark.parametrize(
    ("servers", "place", "problem"),
    [
        ('"x"', "1:13", "servers: it must be an object of servers"),
        ('{"a b": {"url": "http://x"}}', "1:14", "servers.a b: the name of a server has 1 to 32"),
        ('{"a": []}', "1:19", "servers.a: it must be an object"),
        ('{"a": {}}', "1:19", "servers.a: it needs a command, a root or a url"),
        (
            '{"a": {"comand": "x", "root": ".."}}',
            "1:20",
            "servers.a.comand: there is no such setting; did you mean 'command'?",
        ),
        ('{"a": {"command": 1}}', "1:31", "servers.a.command: it must be the name or path of a program"),
        ('{"a": {"url": "ftp://x"}}', "1:27", "servers.a.url: it must be"),
        ('{"a": {"command": "x", "url": "http://example.com"}}', "1:43", "servers.a.url: it must be a URL of this"),
        ('{"a": {"command": "x", "tools": 1}}', "1:45", "servers.a.tools: it must be an object"),
        ('{"a": {"command": "x", "hotReload": {"mcpServerName": "y"}}}', "1:50", "there is no such setting"),
    ],
)
def test_a_wrong_entry_of_servers_is_told_with_its_place(
    tmp_path: Path, servers: str, place: str, problem: str
) -> None:
    config = _read(tmp_path, f'{{"servers": {servers}}}')

    assert config.issues
    assert f"{config.path}:{place}: " in config.issues[0].message
    assert problem in config.issues[0].message
