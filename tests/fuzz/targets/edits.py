"""Edits of configuration files: what is put in and taken out again leaves every byte of others where it was."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import yaml

from uno_devserver.instances.csproj_user import NotUnderstood, merged
from uno_devserver.msbuild.xml import XmlProblem, parse_xml
from uno_devserver.setup import client_cli
from uno_devserver.setup.config_file import decode_text, encode_text
from uno_devserver.setup.edits import json_document, toml_document, toml_splices, yaml_document  # noqa: F401  # instrumented
from uno_devserver.setup.edits.document import EditProblem, open_document
from uno_devserver.setup.entry_command import own_arguments
from uno_devserver.setup.profiles import Format
from uno_devserver.system import jsonc, toml

from ..documents import BUILT, RAW, document
from ..pieces import Pieces
from ..target import Target, told

if TYPE_CHECKING:
    from uno_devserver.setup.edits.document import Document

NAME = "UnoApp"
SETTINGS = {"command": "uvx", "args": ["uno-devserver", "--mcp-app"], "env": {"A b": "é\n"}}

JSON_LINES = (
    "{", "}", "[", "]", ",", ":", "\n", "\r\n", "  ", "\t", "// c\n", "/* c */", '"mcpServers"', '"a"', '"b"',
    '"command"', '"x"', "1.0", "null", "true", '"\\u00e9\\""', '{"mcpServers": {', '"a": {"command": "x"}', "}}",
    ",}", '"":', "1e999",
)  # fmt: skip
TOML_LINES = (
    "[mcp_servers]\n", "[mcp_servers.a]\n", "[mcp_servers.'b c'.env]\n", "[[mcp_servers.c]]\n", "[other]\n",
    "[[list]]\n", 'command = "x"\n', "a = 1\n", "b.c = [1,\n 2] # c\n", "mcp_servers.a.command = 'x'\n",
    "mcp_servers = {", "a = {", "}", ", ", "\n", "\r\n", "# c\n", "  ", 'x = """\n[mcp_servers.z]\n"""\n',
    "y = '''\n'''\n", "d = 1979-05-27T07:32:00Z\n", "f = nan\n", "command='''x'''", '"é\\u0041" = true\n',
    "k = { p = 1, q.r = [] }\n", "\ufeff", "'' = 1\n",
)  # fmt: skip
YAML_LINES = (
    "extensions:\n", "mcpServers:\n", "  a:\n", "    command: x\n", "    args: [a, 'b']\n", "    args:\n",
    "    - a\n", "- name: a\n", "  - name: b\n", "    x: |+\n", "      y\n\n", "  ", "\n", "\r\n", "# c\n", "---\n",
    "...\n", "{", "}", "a: &x {b: 1}\n", "  <<: *x\n", "? k\n", ": v\n", "!!str ", "'é'", '"\\n"',
    "extensions: {a: {}}\n", "mcpServers: []\n", ", ", "\t", "%YAML 1.1\n", "- ", "  b: null\n", "extensions: {}\n",
    "~", ">-\n",
)  # fmt: skip


def check_json(data: bytes) -> None:
    _check(data, JSON_LINES, Format.JSON, ("mcpServers",), None, _json)


def check_toml(data: bytes) -> None:
    _check(data, TOML_LINES, Format.TOML, ("mcp_servers",), None, _toml)


def check_yaml(data: bytes) -> None:
    as_list = data[:1] > b"\x7f"
    root = "mcpServers" if as_list else "extensions"
    _check(data[1:], YAML_LINES, Format.YAML, (root,), "name" if as_list else None, _yaml)


def _text(data: bytes, lines: Sequence[str]) -> str:
    """The text of a file with these bytes, or one of such lines."""
    if data[:1] == BUILT:
        return Pieces(data[1:]).joined(lines)
    text, bom, encoding = decode_text(data[1:])  # raises EditProblem
    assert encode_text(text, bom, encoding) == data[1:]
    return text


def _check(
    data: bytes,
    lines: Sequence[str],
    form: Format,
    root: tuple[str, ...],
    name_key: str | None,
    meaning: Callable[[str], Any],
) -> None:
    try:
        text = _text(data, lines)
        document = open_document(text, form, root, name_key)
    except EditProblem as problem:
        told(problem)
        return
    if any(entry.name == NAME for entry in document.entries):
        return
    try:
        put = document.put(None, NAME, SETTINGS)
    except EditProblem as problem:
        told(problem)
        return
    before = meaning(text)
    after = open_document(put, form, root, name_key)
    assert [repr(entry) for entry in _others(after)] == [repr(entry) for entry in document.entries]
    assert _without(meaning(put), root[0]) == _without(before, root[0])
    if before or not text.strip():
        assert _ours(meaning(put), root[0], name_key) == SETTINGS
    at = next(index for index, entry in enumerate(after.entries) if entry.name == NAME)
    assert after.put(at, NAME, SETTINGS) == put, "a second time changes something"
    if document.entries:
        rest = iter(put)
        assert all(character in rest for character in text), "others' bytes are gone, or changed places"
        assert after.remove([at]) == text, "it does not come out as it went in"
    _check_removal(document, text, form, root, name_key, meaning)


def _check_removal(
    document: Document,
    text: str,
    form: Format,
    root: tuple[str, ...],
    name_key: str | None,
    meaning: Callable[[str], Any],
) -> None:
    for index in range(min(len(document.entries), 3)):
        try:
            left = document.remove([index])
        except EditProblem as problem:
            told(problem)
            continue
        names = [entry.name for entry in open_document(left, form, root, name_key).entries]
        assert names == [entry.name for number, entry in enumerate(document.entries) if number != index]
        if before := meaning(text):  # what has no meaning may get one: without an anchor that was there twice
            assert _without(meaning(left), root[0]) == _without(before, root[0])


def _others(document: Document) -> list[object]:
    return [entry for entry in document.entries if entry.name != NAME]


def _without(meaning: Any, root: str) -> str:
    return repr({key: value for key, value in meaning.items() if key != root}) if isinstance(meaning, dict) else "{}"


def _ours(meaning: Any, root: str, name_key: str | None) -> Any:
    servers = meaning[root]
    if name_key is None:
        return servers[NAME]
    ours = next(dict(one) for one in servers if isinstance(one, dict) and one.get(name_key) == NAME)
    del ours[name_key]
    return ours


def _json(text: str) -> Any:
    try:
        return json.loads(text)  # Python's own reader, where it can read this
    except ValueError:
        return jsonc.parse(text) if jsonc.without_comments(text).strip() else {}


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return toml.parse(text)  # TOML 1.1, which tomllib does not read


class _AnyTag(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Values of unknown tags count as what they are written as."""


def _of_any_tag(loader: _AnyTag, _tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return str(node.value)


_BLANK_LINE_WITH_TAB = re.compile(r"^ *\t[ \t]*(?=\r?$)", re.MULTILINE)
_AnyTag.add_multi_constructor("", _of_any_tag)


def _yaml(text: str) -> Any:
    try:
        return next(iter(yaml.load_all(_BLANK_LINE_WITH_TAB.sub("", text), _AnyTag)), None) or {}
    except (
        yaml.composer.ComposerError,
        yaml.constructor.ConstructorError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
    ):
        return {}  # a value that Python has no form for: it says nothing about the text


# --- .csproj.user -----------------------------------------------------------------------------------------------------


def check_user_file(data: bytes) -> None:
    """The port is in the result, once more changes nothing, and what was no part of it is there unchanged."""
    try:
        once = merged(data, "5000")
    except (XmlProblem, NotUnderstood) as problem:
        told(problem)
        return
    assert merged(once, "5000") == once
    assert b"5000" in once.replace(b"\0", b"")
    root = parse_xml(once)
    ports = [
        one
        for group in root.elements
        if group.name == "PropertyGroup"
        for one in group.elements
        if one.name == "UnoRemoteControlPort"
    ]
    assert ports
    assert all([child for child in one.children if type(child) is str] == ["5000"] for one in ports)


USER_SEED = (
    b'<?xml version="1.0" encoding="utf-8"?>\r\n<Project ToolsVersion="Current">\r\n  <PropertyGroup>\r\n'
    b"    <A>1</A>\r\n    <UnoRemoteControlPort>1234</UnoRemoteControlPort>\r\n  </PropertyGroup>\r\n</Project>"
)
USER_SEEDS = (
    USER_SEED,
    b"<Project/>",
    b"<Project><PropertyGroup Condition=\"'$(A)' == ''\"><UnoRemoteControlPort/></PropertyGroup><!-- c --></Project>\n",
    b"\xef\xbb\xbf<Project>\n\t<PropertyGroup/>\n</Project>\n",
    "<Project><ItemGroup/></Project>".encode("utf-16"),
    b"<Project><PropertyGroup><A><![CDATA[<UnoRemoteControlPort>]]></A></PropertyGroup></Project>",
)

HELD = "put and removed gives the same bytes, all else means the same to another reader"
# --- what clients say, and what their entries start -------------------------------------------------------------------

SERVERS = {"uno": {"uno", "UnoApp"}, "app": {"app"}}


def check_client_answer(data: bytes) -> None:
    """Which servers a client sees, and some lines of what it said, none of them long."""
    printed = data[1:] if data[:1] == RAW else document(data[1:], ANSWER_NAMES, ANSWERS)
    sees, said = client_cli._heard(client_cli._plain(printed), SERVERS)
    assert sees.keys() == SERVERS.keys()
    assert len(said) <= client_cli.MAX_LINES + len(SERVERS)
    assert all(len(line) <= client_cli.MAX_LINE for line in said)


ANSWER_NAMES = ("name", "id", "uno", "app", "status", "servers")
ANSWERS = ('"uno"', '{"uno": {"status": "connected"}}', '[{"name": "app", "enabled": true}]', '"UnoApp"')
ENTRY_WORDS = (
    "uno-devserver", "uno_devserver", "uvx", "uv", "tool", "run", "dnx", "dotnet", "python", "-m", "--from", "-c",
    "bash", "cmd", "/c", "env", "A=b", "-W", "--", "-y", "uno-devserver==1.0", "Uno.DevServer@1", "--yes",
    "exec", "C:\\x.cmd", "", "'uno-devserver --mcp-app'", '"', "uno-devserver --mcp-app", "powershell", "-Command", "é",
    "wsl", "/usr/bin/env",
)  # fmt: skip


def check_entry_command(data: bytes) -> None:
    """The arguments that a command gives to this program, or None: it starts another one."""
    words = tuple(ENTRY_WORDS[byte % len(ENTRY_WORDS)] for byte in data[:12])
    text = data[12:].decode("utf-8", "replace")
    for line in (words, (*words, text), (text,), ("bash", "-c", text)):
        found = own_arguments(line)
        assert found is None or all(isinstance(word, str) for word in found)
    assert own_arguments(("uno-devserver", *words)) == words


TARGETS = (
    Target(
        "edit-json",
        HELD,
        check_json,
        lambda: [
            RAW + b'{"mcpServers": {"a": {"command": "x"}, /* c */ "b": [1],},}',
            RAW + b'{\n\t"x": 1, // c\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}\n',
            RAW + b"",
            RAW + b"// nothing yet",
            BUILT + bytes(range(len(JSON_LINES))),
            BUILT + bytes([21, 22, 23, 6]),
            BUILT + bytes([21, 6, 22, 4, 10, 6, 14, 5, 0, 15, 5, 16, 1, 23]),
        ],
        JSON_LINES,
    ),
    Target(
        "edit-toml",
        HELD,
        check_toml,
        lambda: [
            RAW + b'model = "o"\n\n[mcp_servers.a]\ncommand = "x" # c\n\n[other]\n',
            RAW + b"mcp_servers = { a = { command = 'x' } }\r\n",
            RAW + b"mcp_servers.a.command = 'x'",
            RAW + b"mcp_servers = {\n  a = { b = 1, }, # c\n  # d\n}\n",
            BUILT + bytes(range(len(TOML_LINES))),
            BUILT + bytes([1, 6, 14, 4, 7]),
            BUILT + bytes([0, 9, 7, 16]),
            BUILT + bytes([10, 11, 22, 12, 12, 14]),
        ],
        TOML_LINES,
    ),
    Target(
        "edit-yaml",
        HELD,
        check_yaml,
        lambda: [
            b"\0" + RAW + b"a: 1\nextensions:\n  dev:\n    cmd: x # c\n    args: [a, 'b']\n  12: {}\nz: |\n  t\n",
            b"\xff" + RAW + b"mcpServers:\n- name: a\n  x: |+\n    y\n\nb:\n",
            b"\0" + RAW + b"{extensions: {a: {}}}",
            b"\0" + RAW + b"extensions:\n\t\n  a:\n    b: |\n      c",
            b"\0" + BUILT + bytes([0, 2, 3, 4, 32]),
            b"\xff" + BUILT + bytes([1, 7, 9, 10, 14]),
            b"\0" + BUILT + bytes([26, 14]),
        ],
        YAML_LINES,
    ),
    Target(
        "user-files",
        "the port is set, once more changes nothing, or a reason",
        check_user_file,
        lambda: USER_SEEDS,
        (
            "<PropertyGroup>",
            "</PropertyGroup>",
            "<UnoRemoteControlPort>",
            "</UnoRemoteControlPort>",
            "<Project>",
            "</Project>",
            "<UnoRemoteControlPort/>",
            "<!--",
            "-->",
            "<![CDATA[",
            "]]>",
            "<?x ?>",
            "Condition=''",
        ),
    ),
    Target(
        "client-answers",
        "which servers a client sees, and some lines of what it said",
        check_client_answer,
        lambda: [
            RAW + b"uno: ok \x1b[32mConnected\x1b[0m\napp  not trusted\n",
            RAW + b'warning\n{"uno": {"status": "connected"}}',
            *(BUILT + BUILT + bytes(range(start, start + 40)) for start in range(0, 90, 30)),
        ],
        ("uno", "UnoApp", "app", "\n", "\x1b[0m", "\x1b]", "\x07", "{", "[", '"name":', "/", "[error]"),
    ),
    Target(
        "entry-commands",
        "the arguments that a command gives to this program, or it starts another one",
        check_entry_command,
        lambda: [bytes(range(start, start + 12)) + b"uvx 'uno-devserver' && x" for start in range(0, 40, 6)],
        (*(word for word in ENTRY_WORDS if word.isprintable()), "&&", ";", "$(", "'", " "),
        200,
    ),
)
