"""All files of one TypeScript project: its root files, and everything that they reach by imports."""

from __future__ import annotations

import hashlib

from ...system.files import FileProblem, read_bytes
from ...system.values import Value
from .ts_globs import root_files
from .ts_imports import Imports, scan
from .ts_paths import (
    ALL_GROUPS,
    DECLARATIONS,
    IN_NODE_MODULES,
    JAVASCRIPT,
    TYPESCRIPT_GROUPS,
    absolute,
    extension_of,
    folder_of,
    name_of,
    native,
    within,
)
from .ts_resolution import Resolver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from .ts_disk import Disk
    from .ts_options import Options
    from .tsconfig import TsConfig

MAX_SOURCE_BYTES = 64 * 1024 * 1024  # what is larger was not written by anybody; it counts, but is not read for imports


class Project(Value):
    config: TsConfig
    options: Options
    roots: tuple[str, ...]

    @property
    def stand_ins(self) -> dict[str, str]:
        """What other projects see in place of its sources: the declarations that are built from them."""
        return {
            root: _declaration_of(root, self.options)
            for root in self.roots
            if not root.endswith((*DECLARATIONS, ".json"))
        }


def open_project(config: TsConfig, options: Options, disk: Disk) -> Project:
    return Project(config, options, tuple(root_files(config, options, disk)))


class Scans:
    """What each file imports, remembered by content; `kept` outlives one listing."""

    def __init__(self, kept: MutableMapping[str, Imports], disk: Disk) -> None:
        self._kept = kept
        self._disk = disk
        self._seen: dict[str, Imports | None] = {}
        self._used: set[str] = set()

    def imports(self, path: str) -> Imports | None:
        """None if there is no such file any more."""
        if path not in self._seen:
            self._seen[path] = self._read(path)
        return self._seen[path]

    def forget_others(self) -> None:
        """Drop what no file of this listing has as its content."""
        for key in self._kept.keys() - self._used:
            del self._kept[key]

    def _read(self, path: str) -> Imports | None:
        if path.endswith(".json"):
            return Imports()
        try:
            data = read_bytes(native(path), MAX_SOURCE_BYTES)
        except FileNotFoundError:
            self._disk.say(f"{path} vanished while the sources were listed; it does not count.")
            return None
        except FileProblem as problem:
            self._disk.say(f"{path} cannot be read: {problem.reason}; what it imports is not known.")
            return Imports()
        javascript = path.endswith(JAVASCRIPT)
        key = f"{'js' if javascript else 'ts'} {hashlib.sha256(data).hexdigest()}"
        self._used.add(key)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = scan(data, javascript=javascript)
        return found


def program_files(project: Project, others: Iterable[Project], scans: Scans, disk: Disk) -> list[str]:
    """The files of a project; of the `others`, which it references, it has only what they do not list themselves."""
    return _Program(project, others, scans, disk).run()


class _Program:
    def __init__(self, project: Project, others: Iterable[Project], scans: Scans, disk: Disk) -> None:
        self._options = project.options
        self._project = project
        self._scans = scans
        self._disk = disk
        self._resolver = Resolver(project.options, project.config.path, disk)
        self._groups = ALL_GROUPS if project.options.allow_js else TYPESCRIPT_GROUPS
        self._elsewhere: set[str] = set()
        for other in others:
            for source, declaration in other.stand_ins.items():
                self._elsewhere |= {source, declaration}
        self._known: dict[str, str] = {}
        self._waiting: list[str] = []

    def run(self) -> list[str]:
        for root in self._project.roots:
            self._add_named(root, f"{self._project.config.path} names")
        for name in self._type_packages():
            only_roots = self._options.type_roots is not None
            self._add(self._resolver.types(name, self._project.config.folder, only_roots=only_roots))
        files = []
        while self._waiting:
            path = self._waiting.pop()
            imports = self._scans.imports(path)
            if imports is not None:
                if IN_NODE_MODULES not in path:
                    files.append(path)
                if self._options.follows_imports:
                    self._follow(path, imports)
        return files

    def _type_packages(self) -> Iterable[str]:
        """The packages of types that belong to the program without being imported."""
        if self._options.types is not None:
            return self._options.types
        return [
            name
            for root in self._options.type_roots or ()
            for name, kind in self._disk.entries(root).items()
            if kind and not name.startswith(".")
        ]

    def _follow(self, path: str, imports: Imports) -> None:
        folder = folder_of(path)
        esm = self._is_esm(path)
        node = self._options.node
        static = imports.static
        if self._options.jsx_import and not path.endswith(DECLARATIONS):
            static = (*static, self._options.jsx_import)
        for names, asks_as_esm in ((static, esm), (imports.dynamic, node or esm), (imports.required, False)):
            for name in names:
                self._add_import(self._resolver.module(name, folder, esm=asks_as_esm), path)
        for name in imports.references:
            self._add_named(absolute(name.replace("\\", "/"), folder), f"{path} refers to")
        for name in imports.types:
            self._add(self._resolver.types(name, folder))

    def _is_esm(self, path: str) -> bool:
        """Whether the file is an ES module, by its name, or by its package for Node, or by the `module` option."""
        extension = extension_of(path)
        if extension in (".mts", ".mjs", ".d.mts"):
            return True
        if extension in (".cts", ".cjs", ".d.cts"):
            return False
        if not self._options.node:
            return self._options.module != "commonjs"
        scope = self._disk.scope(folder_of(path))
        return scope is not None and (self._disk.package(scope) or {}).get("type") == "module"

    def _add_import(self, found: str | None, importer: str) -> None:
        """Not everything that can be resolved belongs to the program: the options may lack what its kind needs."""
        if found is None:
            return
        extension = extension_of(found)
        if extension in JAVASCRIPT and (not self._options.allow_js or IN_NODE_MODULES in importer):
            return
        if extension in (".tsx", ".jsx") and not self._options.jsx:
            return
        if _is_arbitrary(found) and not (self._options.arbitrary_extensions or importer.endswith(DECLARATIONS)):
            return
        self._add(found)

    def _add_named(self, path: str, reason: str) -> None:
        """A file that a configuration or a reference names; its extension may be missing."""
        if "." in name_of(path):
            supported = any(path.endswith(group) for group in self._groups)
            paths = [path] if supported or (self._options.json and path.endswith(".json")) else []
        else:
            paths = [path + extension for extension in self._groups[0]]
        found = next((each for each in paths if self._disk.is_file(each)), None)
        if found is None:
            self._disk.say(f"{reason} {path}, which is not there or no source file; it does not count.")
        self._add(found)

    def _add(self, path: str | None) -> None:
        if path is None or path in self._elsewhere:
            return
        key = path if self._disk.case_sensitive else path.lower()
        if key not in self._known:
            self._known[key] = path
            self._waiting.append(path)


def _declaration_of(source: str, options: Options) -> str:
    """Where the compiler writes the declarations of a source file."""
    extension = extension_of(source)
    stem = source.removesuffix(extension)
    written = {".mts": ".d.mts", ".mjs": ".d.mts", ".cts": ".d.cts", ".cjs": ".d.cts"}.get(extension, ".d.ts")
    if options.declarations_folder is not None and within(options.root_folder, stem):
        stem = absolute(stem[len(options.root_folder) + 1 :], options.declarations_folder)
    return stem + written


def _is_arbitrary(path: str) -> bool:
    """Declarations of what is not code: `style.d.css.ts` for `style.css`."""
    name = name_of(path)
    return path.endswith(".ts") and not path.endswith(".d.ts") and ".d." in name
