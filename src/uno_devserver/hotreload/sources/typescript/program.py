"""The source files of a TypeScript package: those that the compiler would list, found without running it.

The list is that of `tsc --listFilesOnly` for `tsconfig.build.json`, else `tsconfig.json`, and for every project that it
references, without `node_modules` and the compiler's own library. The output of referenced projects is left out as
well: the compiler reads their declarations in place of their sources, but people edit the sources, and a build must not
look like an edit. What is broken or missing is reported in `problems`.

Hand-written: running `tsc` takes about a second, and it may not be installed.
"""

from __future__ import annotations

import hashlib
import os

from ....system.files import FileProblem
from ....system.folders import relative_path
from ....system.values import Value
from ....workspace.npm_packages import TSCONFIGS
from .disk import (
    ALL_GROUPS,
    DECLARATIONS,
    IN_NODE_MODULES,
    JAVASCRIPT,
    TYPESCRIPT_GROUPS,
    Disk,
    absolute,
    extension_of,
    folder_of,
    name_of,
    native,
    slashed,
    upwards,
    within,
)
from .imports import ImportedNames, scan
from .resolution import Resolver
from .root_files import root_files
from .tsconfig import NEWEST, read_options, read_tsconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from ..source_tree import SourceTree
    from .tsconfig import TsConfig, TsOptions

# .json also because tsconfig.json and package.json may appear later.
TYPESCRIPT_ENDINGS = (".ts", ".tsx", ".mts", ".cts", ".json")
MAX_PROJECTS = 1000  # a large workspace has a hundred
MAX_SOURCE_BYTES = 64 * 1024 * 1024  # a larger file is a source, but its imports are not read


def find_typescript(tree: SourceTree, cache: dict[str, ImportedNames]) -> frozenset[str]:
    """Add the sources of the package in the root of the tree; return the endings of all names that may be sources.

    `cache` is kept by the caller between calls.
    """
    folder = slashed(tree.root)
    disk = Disk(not _ignores_case(folder), tree.budget)
    name = next((name for name in TSCONFIGS if disk.is_file(f"{folder}/{name}")), None)
    projects: dict[str, TsProject] = {}
    if name is None:
        disk.say(f"{folder} has neither a {TSCONFIGS[0]} nor a {TSCONFIGS[1]}; it has no TypeScript sources.")
    else:
        projects = _open_projects(f"{folder}/{name}", _compiler_version(folder, disk), disk)
    imports = _ImportCache(cache, disk)
    found: dict[str, None] = {}
    for path, project in projects.items():
        found.update(dict.fromkeys(_Program(project, _referenced(path, projects), imports, disk).run()))
    imports.forget_others()
    _fill(tree, folder, sorted(found), disk)
    allow_js = any(project.options.allow_js for project in projects.values())
    return frozenset({*TYPESCRIPT_ENDINGS, *(JAVASCRIPT if allow_js else ())}) if projects else frozenset({".json"})


def _fill(tree: SourceTree, folder: str, files: list[str], disk: Disk) -> None:
    prefix = folder if folder.endswith("/") else f"{folder}/"
    for path in files:
        inside = path.startswith(prefix)
        key = slashed(path[len(prefix) :] if inside else relative_path(native(path), native(folder)))
        if not tree.excludes(key):
            tree.files[key] = native(path)
    tree.folders.update(map(native, disk.folders))
    tree.deciding.update(map(native, disk.deciding))
    tree.problems += disk.problems


def _ignores_case(folder: str) -> bool:
    other = folder.swapcase()
    return other != folder and os.path.exists(native(other))


def _compiler_version(folder: str, disk: Disk) -> int:
    """The major version of the TypeScript that builds the package."""
    for above in upwards(folder):
        package = disk.package(f"{above.rstrip('/')}/node_modules/typescript")
        if package is not None:
            major = str(package.get("version")).split(".", 1)[0]
            return int(major) if major.isdecimal() else NEWEST
    return NEWEST


def _open_projects(first: str, version: int, disk: Disk) -> dict[str, TsProject]:
    """The project and all projects that it references, by the path of each configuration."""
    projects: dict[str, TsProject] = {}
    waiting = [first]
    while waiting:
        path = waiting.pop()
        if path in projects:
            continue
        if len(projects) >= MAX_PROJECTS:
            disk.say(f"{first} references more than {MAX_PROJECTS} projects; the rest is ignored.")
            break
        config = read_tsconfig(path, disk)
        options = read_options(config, version)
        projects[path] = TsProject(config, options, tuple(root_files(config, options, disk)))
        for reference in config.references:
            target = _config_of(reference)
            if disk.is_file(target):
                waiting.append(target)
            else:
                disk.say(f"{path} references {target}, which does not exist; it is ignored.")
    return projects


def _config_of(reference: str) -> str:
    return reference if reference.endswith(".json") else f"{reference.rstrip('/')}/tsconfig.json"


def _referenced(path: str, projects: dict[str, TsProject]) -> list[TsProject]:
    """The projects that a project references, directly or through others, without itself."""
    seen = {path}
    waiting = [path]
    while waiting:
        for reference in projects[waiting.pop()].config.references:
            target = _config_of(reference)
            if target in projects and target not in seen:
                seen.add(target)
                waiting.append(target)
    return [projects[each] for each in seen if each != path]


class TsProject(Value):
    config: TsConfig
    options: TsOptions
    roots: tuple[str, ...]

    @property
    def declarations(self) -> dict[str, str]:
        """Maps each source to the declarations built from it, which other projects read in its place."""
        return {
            root: _declaration_of(root, self.options)
            for root in self.roots
            if not root.endswith((*DECLARATIONS, ".json"))
        }


class _ImportCache:
    """The imports of each file, by its content; `kept` outlives one listing."""

    def __init__(self, kept: MutableMapping[str, ImportedNames], disk: Disk) -> None:
        self._kept = kept
        self._disk = disk
        self._seen: dict[str, ImportedNames | None] = {}
        self._used: set[str] = set()

    def of(self, path: str) -> ImportedNames | None:
        """The imports of a file; None if the file no longer exists."""
        if path not in self._seen:
            self._seen[path] = self._read(path)
        return self._seen[path]

    def forget_others(self) -> None:
        """Drop the contents that no file of this listing has."""
        for key in self._kept.keys() - self._used:
            del self._kept[key]

    def _read(self, path: str) -> ImportedNames | None:
        if path.endswith(".json"):
            return ImportedNames()
        try:
            data = self._disk.budget.read(native(path), MAX_SOURCE_BYTES)
        except FileNotFoundError:
            self._disk.say(f"{path} was removed while the sources were listed; it is ignored.")
            return None
        except FileProblem as problem:
            self._disk.say(f"{path} cannot be read: {problem.reason}; its imports are not known.")
            return ImportedNames()
        javascript = path.endswith(JAVASCRIPT)
        key = f"{'js' if javascript else 'ts'} {hashlib.sha256(data).hexdigest()}"
        self._used.add(key)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = scan(data, javascript=javascript)
        return found


class _Program:
    """The files of a project, without those of the projects that it references (`others`)."""

    def __init__(self, project: TsProject, others: Iterable[TsProject], imports: _ImportCache, disk: Disk) -> None:
        self._options = project.options
        self._project = project
        self._imports = imports
        self._disk = disk
        self._resolver = Resolver(project.options, project.config.path, disk)
        self._groups = ALL_GROUPS if project.options.allow_js else TYPESCRIPT_GROUPS
        self._elsewhere: set[str] = set()
        for other in others:
            for source, declaration in other.declarations.items():
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
            imports = self._imports.of(path)
            if imports is not None:
                if IN_NODE_MODULES not in path:
                    files.append(path)
                if self._options.follows_imports:
                    self._follow(path, imports)
        return files

    def _type_packages(self) -> Iterable[str]:
        """The type packages that belong to the program without an import."""
        if self._options.types is not None:
            return self._options.types
        return [
            name
            for root in self._options.type_roots or ()
            for name, kind in self._disk.entries(root).items()
            if kind and not name.startswith(".")
        ]

    def _follow(self, path: str, imports: ImportedNames) -> None:
        folder = folder_of(path)
        esm = self._is_esm(path)
        node = self._options.node
        static = imports.static
        if self._options.jsx_import and not path.endswith(DECLARATIONS):
            static = (*static, self._options.jsx_import)
        for names, asks_as_esm in ((static, esm), (imports.dynamic, node or esm), (imports.required, False)):
            for name in names:
                self._disk.budget.check()
                self._add_import(self._resolver.module(name, folder, esm=asks_as_esm), path)
        for name in imports.references:
            self._add_named(absolute(name.replace("\\", "/"), folder), f"{path} references")
        for name in imports.types:
            self._add(self._resolver.types(name, folder))

    def _is_esm(self, path: str) -> bool:
        """Whether the file is an ES module: by its name, for Node by its package, otherwise by the `module` option."""
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
        """Add a resolved import, if the options allow files of its kind."""
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
        """Add a file that a configuration or a reference names, perhaps without its extension."""
        if "." in name_of(path):
            supported = any(path.endswith(group) for group in self._groups)
            paths = [path] if supported or (self._options.json and path.endswith(".json")) else []
        else:
            paths = [path + extension for extension in self._groups[0]]
        found = next((each for each in paths if self._disk.is_file(each)), None)
        if found is None:
            self._disk.say(f"{reason} {path}, which does not exist or is not a source file; it is left out.")
        self._add(found)

    def _add(self, path: str | None) -> None:
        if path is None or path in self._elsewhere:
            return
        key = path if self._disk.case_sensitive else path.lower()
        if key not in self._known:
            self._known[key] = path
            self._waiting.append(path)


def _declaration_of(source: str, options: TsOptions) -> str:
    """The file to which the compiler writes the declarations of a source file."""
    extension = extension_of(source)
    stem = source.removesuffix(extension)
    written = {".mts": ".d.mts", ".mjs": ".d.mts", ".cts": ".d.cts", ".cjs": ".d.cts"}.get(extension, ".d.ts")
    if options.declarations_folder is not None and within(options.root_folder, stem):
        stem = absolute(stem[len(options.root_folder) + 1 :], options.declarations_folder)
    return stem + written


def _is_arbitrary(path: str) -> bool:
    """Whether these are declarations for a file that is not code: `style.d.css.ts` for `style.css`."""
    name = name_of(path)
    return path.endswith(".ts") and not path.endswith(".d.ts") and ".d." in name
