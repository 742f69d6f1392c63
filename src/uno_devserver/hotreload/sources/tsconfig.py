"""One TypeScript configuration with everything that it extends: which files it names, its options, its references.

Every path is made absolute against the folder of the file that has it, as TypeScript does; what a file sets replaces
what it inherits, key by key. A file that is broken, missing or part of a circle counts as if it were not extended.
"""

from __future__ import annotations

from ...system.values import Value
from .ts_extends import locate
from .ts_paths import absolute, folder_of, rooted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .ts_disk import Disk

MAX_EXTENDS = 100  # a chain has two or three files; this bounds what a strange one costs
CONFIG_DIR = "${configDir}"  # stands for the folder of the configuration that is asked for, not of the one that has it
_PATH_OPTIONS = ("outDir", "declarationDir", "rootDir", "baseUrl")
_PATH_LIST_OPTIONS = ("rootDirs", "typeRoots")
_INHERITED = ("files", "include", "exclude")  # references are not


class TsConfig(Value):
    path: str
    folder: str
    files: tuple[str, ...] | None  # absolute; None where nothing is said
    include: tuple[str, ...] | None
    exclude: tuple[str, ...] | None
    options: Mapping[str, object]  # compilerOptions as written, paths absolute
    references: tuple[str, ...] = ()  # absolute: the folder or file of each other project


def read_tsconfig(path: str, disk: Disk) -> TsConfig:
    """The configuration in `path`, with what it extends."""
    folder = folder_of(path)
    raw = _Merged(disk).read(path, ())
    files, include, exclude = (_placed_all(raw.lists.get(key), folder) for key in _INHERITED)
    options = {name: _map_strings(value, lambda text: _placed(text, folder)) for name, value in raw.options.items()}
    references = tuple(absolute(reference, folder) for reference in raw.references)
    return TsConfig(path, folder, files, include, exclude, options, references)


class _Raw:
    """One file with what it extends, before `${configDir}` is known."""

    def __init__(self) -> None:
        self.lists: dict[str, list[str]] = {}
        self.options: dict[str, object] = {}
        self.references: list[str] = []


class _Merged:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._left = MAX_EXTENDS

    def read(self, path: str, above: tuple[str, ...]) -> _Raw:
        own = self._disk.configuration(path)
        folder = folder_of(path)
        result = _Raw()
        for base in self._bases(own.get("extends"), path, (*above, path)):
            inherited = self.read(base, (*above, path))
            result.lists.update(inherited.lists)
            result.options.update(inherited.options)
        result.lists.update(self._own_lists(own, path))
        result.options.update(self._own_options(own.get("compilerOptions"), path, folder))
        result.references = self._own_references(own.get("references"), path)
        return result

    def _bases(self, extends: object, path: str, above: tuple[str, ...]) -> list[str]:
        """The files that `extends` names, in the order in which they count."""
        if extends is None:
            return []
        names = extends if isinstance(extends, list) else [extends]
        bases = []
        for name in names:
            if not isinstance(name, str):
                self._disk.say(f"{path}: extends holds {name!r} where a text is expected; it does not count.")
                continue
            base = locate(name, folder_of(path), self._disk)
            if base is None:
                self._disk.say(f"{path} extends {name}, which is not found; its settings do not count.")
            elif base in above:
                circle = " -> ".join((*above[above.index(base) :], base))
                self._disk.say(f"{path} extends {name} in a circle ({circle}); it is not followed again.")
            elif self._left <= 0:
                self._disk.say(
                    f"{path} extends {name}, but more than {MAX_EXTENDS} files are extended; it is left out."
                )
            else:
                self._left -= 1
                bases.append(base)
        return bases

    def _own_lists(self, own: dict[str, object], path: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in _INHERITED:
            value = own.get(key)
            if value is None:
                continue
            if not isinstance(value, list):
                self._disk.say(f"{path}: {key} is not a list; it does not count.")
                continue
            for item in value:
                if not isinstance(item, str):
                    self._disk.say(f"{path}: {key} holds {item!r} where a text is expected; it does not count.")
            folder = folder_of(path)
            found[key] = [_located(item, folder) for item in value if isinstance(item, str)]
        return found

    def _own_options(self, value: object, path: str, folder: str) -> dict[str, object]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._disk.say(f"{path}: compilerOptions is not an object; it does not count.")
            return {}
        options = dict(value)
        for name in (*_PATH_OPTIONS, *_PATH_LIST_OPTIONS):
            if name in options:
                options[name] = _map_strings(options[name], lambda text: _located(text, folder))
        if options.get("paths") is not None:
            options["pathsBase"] = folder  # where the patterns' targets are, unless there is a baseUrl
        return options

    def _own_references(self, value: object, path: str) -> list[str]:
        if value is None:
            return []
        found = []
        for reference in value if isinstance(value, list) else [value]:
            target = reference.get("path") if isinstance(reference, dict) else None
            if isinstance(target, str):
                found.append(target)
            else:
                self._disk.say(f'{path}: references holds {reference!r}, expected {{"path": ...}}; it does not count.')
        return found


def _located(path: str, folder: str) -> str:
    """The path seen from the file that has it; wildcards are left as they are, `..` behind one too."""
    path = path.replace("\\", "/")
    return path if path.startswith(CONFIG_DIR) or rooted(path) else f"{folder.rstrip('/')}/{path}"


def _placed_all(paths: list[str] | None, folder: str) -> tuple[str, ...] | None:
    return None if paths is None else tuple(_placed(path, folder) for path in paths)


def _placed(path: str, folder: str) -> str:
    return absolute(f"./{path[len(CONFIG_DIR) :]}", folder) if path.startswith(CONFIG_DIR) else path


def _map_strings(value: object, change: Callable[[str], str], depth: int = 3) -> object:
    """An option with each text in it changed; `paths`, an object of lists, is the deepest that there is."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list) and depth:
        return [_map_strings(item, change, depth - 1) for item in value]
    if isinstance(value, dict) and depth:
        return {key: _map_strings(item, change, depth - 1) for key, item in value.items()}
    return value
