"""The table in docs/clients.md, from the profiles. `python tests/support/client_table.py` brings it up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uno_devserver.setup.definitions import CLIENTS, packaged

PAGE = Path(__file__).parent.parent.parent / "docs" / "clients.md"
BEGIN, END = "<!-- begin: generated from client-profiles.json -->\n", "<!-- end: generated -->\n"
COLUMNS = (
    *("client", "files of the workspace", "files of the user", "format", "servers under", "waits for a server"),
    *("before it is used", "evidence"),
)
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n"
FORMATS = {"json": "JSON, strict", "jsonc": "JSON", "toml": "TOML", "yaml": "YAML"}
SYSTEMS = {"linux": "Linux", "macos": "macOS", "windows": "Windows"}
SHORT = (("{workspace}/", ""), ("{home}", "~"), ("{appdata}", "<appdata>"), ("{localappdata}", "<localappdata>"))


def current(page: str) -> str:
    """The page with the table as it should be."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def table() -> str:
    clients = {name: data for name, data in packaged(f"{CLIENTS}.json").items() if name != "$schema"}
    return HEAD + "".join(_row(name, data) for name, data in clients.items())


def _row(name: str, data: dict[str, Any]) -> str:
    places = [{"path": one} if isinstance(one, str) else one for one in data["configPaths"]]
    also = "".join(f", `{alias}`" for alias in data.get("aliases", ()))
    cells = [
        f"{data['name']} (`{name}`{also})",
        *(_files(data, [one for one in places if _scope(one) == scope]) for scope in ("workspace", "user")),
        FORMATS[data.get("format", "jsonc")],
        f"`{data['jsonRootKey']}`",
        f"{data['connectSeconds']} s" if "connectSeconds" in data else "–",
        _gates(data),
        f"{data['evidence']}, {data['checked']}",
    ]
    return f"| {' | '.join(cells)} |\n"


def _scope(place: dict[str, Any]) -> str:
    return str(place.get("scope") or ("workspace" if place["path"].startswith("{workspace}") else "user"))


def _files(data: dict[str, Any], places: list[dict[str, Any]]) -> str:
    systems: dict[tuple[str, ...], list[str]] = {}  # those on which a path is the same stand together
    for place in places:
        systems.setdefault(_file(data, place), []).extend(SYSTEMS[one] for one in place.get("systems", ()))
    return "<br>".join(_line(*file, remarks=remarks) for file, remarks in systems.items()) or "–"


def _file(data: dict[str, Any], place: dict[str, Any]) -> tuple[str, ...]:
    """The path, and what is to be said of it."""
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


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text("utf-8")), "utf-8")
