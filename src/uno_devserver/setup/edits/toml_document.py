"""TOML documents, as Codex stores its servers.

`tomllib` parses the text before and after a change. The new text is returned only if it differs in meaning by exactly
that change, and if everything outside the entry is still written as before.

Hand-written, because tomlkit keeps comments but not all other bytes.
"""

from __future__ import annotations

import re

from .document import UNSAFE, EditProblem, ServerEntry, WrongKind, same_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from .document import Remark

    Table = dict[str, object]
    Path = tuple[str, ...]

_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array"}
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")  # in messages of tomllib


class TomlDocument:
    """A Document for TOML. Its names are unique, so adding an entry with an existing name changes that entry."""

    remarks: tuple[Remark, ...] = ()  # comments are part of TOML, for every reader

    def __init__(self, text: str, root: Path) -> None:
        self._text = text
        self._root = root
        self._data = _meaning(text)
        self._servers = _table_at(self._data, root)
        # tomllib fills its tables while it reads, so this is the order of first appearance.
        self.entries = tuple(
            ServerEntry(name, value if isinstance(value, dict) else None) for name, value in self._servers.items()
        )

    def spans(self, at: int) -> tuple[tuple[int, int], ...]:
        from . import toml_splices

        return toml_splices.spans(self._text, (*self._root, self.entries[at].name))

    def put(self, at: int | None, name: str, settings: Mapping[str, object], drop: Collection[str] = ()) -> str:
        from . import toml_splices  # imported late, because its patterns take 3 ms

        name = name if at is None else self.entries[at].name
        new = dict(settings)
        old = self._servers.get(name)
        if isinstance(old, dict):
            gone = [key for key in old if key in drop and key not in new]
            kept = {key: value for key, value in old.items() if key not in gone}
            servers = {**self._servers, name: {**kept, **new}}
            return self._changed([name], servers, lambda text, path: toml_splices.update(text, path, old, new, gone))
        change = toml_splices.replace if name in self._servers else toml_splices.add
        return self._changed([name], {**self._servers, name: new}, lambda text, path: change(text, path, new))

    def remove(self, indexes: Collection[int]) -> str:
        from . import toml_splices

        names = [self.entries[index].name for index in indexes]
        servers = {name: value for name, value in self._servers.items() if name not in names}
        return self._changed(names, servers, toml_splices.without)

    def _changed(self, names: Sequence[str], servers: Table, change: Callable[[str, Path], str]) -> str:
        """Apply a change to each of these entries; raises EditProblem unless these `servers` and all else result."""
        from .toml_splices import foreign

        text = self._text
        try:
            for name in names:
                path = (*self._root, name)
                new = change(text, path)
                if foreign(new, path) != foreign(text, path):
                    raise self._unsafe(name)
                text = new
            if not self._means(text, servers):
                raise self._unsafe(*names)
        except RecursionError:
            raise self._unsafe(*names) from None
        return text

    def _means(self, text: str, servers: Table) -> bool:
        try:
            data = _meaning(text)
            found = _table_at(data, self._root)
        except EditProblem:
            return False
        return same_value(_with_table(data, self._root, found), _with_table(self._data, self._root, servers))

    def _unsafe(self, *names: str) -> EditProblem:
        entries = ", ".join(f"'{'.'.join((*self._root, name))}'" for name in names)
        return EditProblem(f"{entries} {UNSAFE}")


def _meaning(text: str) -> Table:
    import tomllib  # imported late, because it takes 9 ms

    from ...system.toml import TomlProblem, parse

    try:
        return parse(text)
    except TomlProblem as problem:
        raise EditProblem(problem.reason, problem.line, problem.column) from None
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
    except RecursionError:
        raise EditProblem("nested too deeply") from None
    except ValueError:  # Python's limit of thousands of digits
        raise EditProblem("a number has too many digits") from None
    place = _PLACE.search(reason)
    if place is None:
        raise EditProblem(reason)
    end = text.count("\n") + 1, len(text) - text.rfind("\n")
    line, column = map(int, place.groups()) if place[1] else end
    raise EditProblem(reason[: place.start()], line, column)


def _table_at(data: Table, path: Path) -> Table:
    """The table at a path; an empty one if it does not exist."""
    table = data
    for depth, key in enumerate(path, start=1):
        value = table.get(key, {})
        if not isinstance(value, dict):
            kind = _KINDS.get(type(value), "a date or time")
            raise WrongKind(f"'{'.'.join(path[:depth])}' is {kind}, not a table")
        table = value
    return table


def _with_table(data: Table, path: Path, table: Table) -> Table:
    """The data with that table at a path. Empty tables on the path are left out: headers add and remove them."""
    if not path:
        return table
    rest = {key: value for key, value in data.items() if key != path[0]}
    inner = data.get(path[0])
    held = _with_table(inner if isinstance(inner, dict) else {}, path[1:], table)
    return {**rest, path[0]: held} if held else rest
