"""The parts of pages in docs/ that are generated: tables of clients, commands and settings.

`python tests/documents/generated_pages.py` brings them up to date. Each stands between `<!-- begin: name -->` and
`<!-- end: name -->`; the rest of a page is written by hand, and stays. A part that a page does not have yet is added at
its end, in a section of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import uno_devserver.workspace
from uno_devserver.cli.commands import CHILD, COMMANDS, GLOBAL_OPTIONS, Command, Option, Unknown
from uno_devserver.setup.definitions import CLIENTS, packaged
from uno_devserver.workspace.config import FIELDS, SERVER_FIELDS, SERVERS, Field, FieldKind

DOCS = Path(__file__).parents[2] / "docs"
CLIENT_PAGE, COMMAND_PAGE, SETTING_PAGE = DOCS / "clients.md", DOCS / "commands.md", DOCS / "configuration.md"
SCHEMA = Path(str(uno_devserver.workspace.__file__)).parent / "host.config.schema.json"


def parts_of(page: Path) -> dict[str, str]:
    """The generated texts of a page, by name."""
    if page == CLIENT_PAGE:
        return {"generated from client-profiles.json": client_table()}
    if page == SETTING_PAGE:
        return {"generated from host.config.schema.json": setting_tables()}
    return {
        "all commands": _overview(),
        "options of every command": _options(GLOBAL_OPTIONS),
        **{command.name: _section(command) for command in described_commands()},
    }


def current(page: Path) -> str:
    """The text of a page with its generated parts as they should be."""
    text = page.read_text("utf-8")
    for name, part in parts_of(page).items():
        begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->\n"
        if begin not in text:
            text = f"{text.rstrip()}\n\n## {name}\n\n{begin}{end}"
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        text = f"{before}{begin}\n{part}\n{end}{after}"
    return text


# --- clients ----------------------------------------------------------------------------------------------------------

COLUMNS = (
    *("client", "files of the workspace", "files of the user", "format", "servers under", "waits for a server"),
    *("before it is used", "evidence"),
)
CLIENT_HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n"
FORMATS = {"json": "JSON, strict", "jsonc": "JSON", "toml": "TOML", "yaml": "YAML"}
SYSTEMS = {"linux": "Linux", "macos": "macOS", "windows": "Windows"}
SHORT = (("{workspace}/", ""), ("{home}", "~"), ("{appdata}", "<appdata>"), ("{localappdata}", "<localappdata>"))


def client_table() -> str:
    clients = {name: data for name, data in packaged(f"{CLIENTS}.json").items() if name != "$schema"}
    return CLIENT_HEAD + "".join(_client_row(name, data) for name, data in clients.items())


def _client_row(name: str, data: dict[str, Any]) -> str:
    places = [{"path": one} if isinstance(one, str) else one for one in data["configPaths"]]
    also = "".join(f", `{alias}`" for alias in data.get("aliases", ()))
    cells = [
        f"{data['name']} (`{name}`{also})",
        _files(data, [one for one in places if _scope(one) == "workspace"]) + _folders(data),
        _files(data, [one for one in places if _scope(one) == "user"]),
        FORMATS[data.get("format", "jsonc")],
        f"`{data['jsonRootKey']}`",
        f"{data['connectSeconds']} s" if "connectSeconds" in data else "–",
        _gates(data),
        f"{data['evidence']}, {data['checked']}",
    ]
    return f"| {' | '.join(cells)} |\n"


def _folders(data: dict[str, Any]) -> str:
    """Which folders the client looks into, if not only into the one that it opens."""
    remark = "and of the repository" if data.get("searchesUp") else "opens no folder"
    return f"<br>*{remark}*" if data.get("searchesUp") or not data.get("opensFolders", True) else ""


def _scope(place: dict[str, Any]) -> str:
    return str(place.get("scope") or ("workspace" if place["path"].startswith("{workspace}") else "user"))


def _files(data: dict[str, Any], places: list[dict[str, Any]]) -> str:
    systems: dict[tuple[str, ...], list[str]] = {}  # systems on which a path is the same share a line
    for place in places:
        systems.setdefault(_file(data, place), []).extend(SYSTEMS[one] for one in place.get("systems", ()))
    return "<br>".join(_line(*file, remarks=remarks) for file, remarks in systems.items()) or "–"


def _file(data: dict[str, Any], place: dict[str, Any]) -> tuple[str, ...]:
    """The path of a file, and remarks about it."""
    use, root = place.get("use", "write"), place.get("rootKey")
    path = f"`{_path(data, place['path'])}`"
    # Without a target, a client has one place for each system.
    path = f"**{path}**" if use == "write" and data.get("writeTarget", place["path"]) == place["path"] else path
    return (
        path,
        *([] if use == "write" else [use]),
        *([f"under `{root if isinstance(root, str) else '.'.join(map(_short, root))}`"] if root else []),
        *([FORMATS[place["format"]]] if "format" in place else []),
    )


def _line(path: str, *others: str, remarks: list[str]) -> str:
    said = ", ".join((*remarks, *others))
    return f"{path} ({said})" if said else path


def _path(data: dict[str, Any], template: str) -> str:
    for name, default in data.get("variables", {}).items():
        if template.startswith(f"{{{name}}}"):
            return (
                f"{_short(template.replace(f'{{{name}}}', default))}` or `${name}{template.removeprefix(f'{{{name}}}')}"
            )
    return _short(template)


def _short(template: str) -> str:
    for token, short in SHORT:
        template = template.replace(token, short)
    return template.replace("{config}", "~/.config").replace("{workspace}", "<workspace>")


def _gates(data: dict[str, Any]) -> str:
    if "noClient" in data:
        return str(data["noClient"])
    gates = [
        (f"*{', '.join(gate['scopes'])}*: " if "scopes" in gate else "") + gate["text"]
        for gate in data.get("gates", ())
    ]
    return "<br>".join(gates).replace("|", "\\|") or "–"


# --- commands ---------------------------------------------------------------------------------------------------------

UNKNOWN = {
    Unknown.REFUSE: "",
    Unknown.IGNORE: "Unknown options are ignored, with a warning.",
    Unknown.FORWARD: "Unknown options, and everything behind `--`, are passed on.",
    Unknown.LEAVE: "Everything behind the command belongs to the Host: `uno-devserver host --help` shows its flags.",
}
TO_HOST = "Unknown options are passed on to the Host. A command behind `--` is an MCP server to proxy instead."


def described_commands() -> list[Command]:
    """All commands but further names of an earlier one."""
    first: dict[str, Command] = {}
    for command in COMMANDS:
        first.setdefault(command.runner, command)
    return list(first.values())


def _overview() -> str:
    rows = [
        f"| [`{command.name}`](#{command.name.replace(' ', '-')}) | {command.help} |\n"
        for command in described_commands()
    ]
    return "| command | |\n|---|---|\n" + "".join(rows)


def _section(command: Command) -> str:
    usage = " ".join(["uno-devserver", command.name, "[options]", *(f"[{name}]" for name in command.arguments)])
    others = [f"`{other.name}`" for other in COMMANDS if other.runner == command.runner and other is not command]
    parts = [
        f"{command.help}.",
        f"`{usage}`" + (f", also {', '.join(others)}" if others else ""),
        "\n".join(f"- {what}: `{line}`" for what, line in command.examples),
        _options(command.options).rstrip() if command.options else "",
        TO_HOST if CHILD in command.arguments and command.unknown is Unknown.FORWARD else UNKNOWN[command.unknown],
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _options(options: tuple[Option, ...]) -> str:
    rows = [f"| `{option.usage}` | {option.help} |\n" for option in options]
    return "| option | |\n|---|---|\n" + "".join(rows)


# --- settings ---------------------------------------------------------------------------------------------------------

SETTING_HEAD = "| setting | it is | default | meaning |\n|---|---|---|---|\n"
DEFAULT = " Default: "
META = "$schema"  # for editors
OF_SERVER = [field.key for field in FIELDS if field.section == "mcpServer"]


def setting_tables() -> str:
    """One table for the settings at the top, and one for each section."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    top = [name for name, part in schema["properties"].items() if "properties" not in part and name != SERVERS]
    parts = [_setting_table(schema, FIELDS, "", top)]
    for name, part in schema["properties"].items():
        if name == SERVERS:
            parts.append(f"### `{name}`\n\n{part['description']}\n\n{_entry_table(schema['$defs']['server'])}")
        elif name not in top:
            table = _setting_table(part, FIELDS, name, list(part["properties"]))
            parts.append(f"### `{name}`\n\n{part['description']}\n\n{table}")
    return "\n".join(parts)


def _entry_table(entry: dict[str, Any]) -> str:
    """What an entry of `servers` has of its own, and which of the other settings it has."""
    own = [key for key, described in entry["properties"].items() if "$ref" not in described]
    of_server = ", ".join(f"`{key}`" for key in entry["properties"] if key in OF_SERVER)
    return (
        f"Each has, like `mcpServer`: {of_server}. Each may have its own `hotReload` (without `mcpServerName`), "
        f"`tools` and `pipeline`. And:\n\n{_setting_table(entry, SERVER_FIELDS, '', own, f'{SERVERS}.<name>.')}"
    )


def _setting_table(
    schema: dict[str, Any], fields: tuple[Field, ...], section: str, keys: list[str], base: str = ""
) -> str:
    known = {field.key: field for field in fields if field.section == section}
    rows = (_setting_row(known[key], schema["properties"][key], base) for key in keys if key != META)
    return SETTING_HEAD + "".join(rows)


def _setting_row(field: Field, described: dict[str, Any], base: str) -> str:
    meaning, _, said = described["description"].partition(DEFAULT)
    default = f"`{json.dumps(described['default'])}`" if "default" in described else said.rstrip(".") or "none"
    bounds = f", {field.least} to {field.most}" if field.kind is FieldKind.NUMBER else ""
    return f"| `{base}{field.title}` | {field.kind.value}{bounds} | {default} | {meaning} |\n"


if __name__ == "__main__":
    for each in (CLIENT_PAGE, COMMAND_PAGE, SETTING_PAGE):
        each.write_text(current(each), "utf-8")
