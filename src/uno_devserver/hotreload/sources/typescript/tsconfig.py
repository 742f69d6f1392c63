"""One TypeScript configuration with everything that it extends: files, references and compiler options.

As in TypeScript, each path is relative to the folder of the file that has it, and the keys of a file replace those that
it inherits. A file that is invalid, missing or part of a cycle is treated as if it were not extended.
"""

from __future__ import annotations

from ....system.values import Value
from .disk import absolute, folder_of, is_relative, name_of, rooted, upwards
from .resolution import ResolutionMode, export_targets, split_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .disk import Disk

MAX_EXTENDS = 100  # a usual chain has two or three files
CONFIG_DIR = "${configDir}"  # stands for the folder of the configuration that extends the others
_PATH_OPTIONS = ("outDir", "declarationDir", "rootDir", "baseUrl")
_PATH_LIST_OPTIONS = ("rootDirs", "typeRoots")
_INHERITED = ("files", "include", "exclude")  # references are not
_EXTENDS_CONDITIONS = ("require", "types", "node")
NEWEST = 7  # the version that is assumed if the package has no TypeScript of its own
_RESOLUTIONS = {each.value: each for each in ResolutionMode} | {"node": ResolutionMode.NODE10}
_OLD_MODULES = frozenset(("none", "amd", "umd", "system"))
_ES_MODULES = frozenset(("es6", "es2015", "es2020", "es2022", "esnext"))
_NODE_MODULES = frozenset(("node16", "node18", "node20"))
_OLD_TARGETS = frozenset(("es3", "es5"))


class TsConfig(Value):
    path: str
    folder: str
    files: tuple[str, ...] | None  # absolute paths; None if not given
    include: tuple[str, ...] | None
    exclude: tuple[str, ...] | None
    options: Mapping[str, object]  # compilerOptions as written, paths absolute
    references: tuple[str, ...] = ()  # absolute paths: the folder or file of each other project


def read_tsconfig(path: str, disk: Disk) -> TsConfig:
    """The configuration in `path`, with everything that it extends."""
    folder = folder_of(path)
    raw = _Merged(disk).read(path, ())
    files, include, exclude = (_placed_all(raw.lists.get(key), folder) for key in _INHERITED)
    options = {name: _map_strings(value, lambda text: _placed(text, folder)) for name, value in raw.options.items()}
    references = tuple(absolute(reference, folder) for reference in raw.references)
    return TsConfig(path, folder, files, include, exclude, options, references)


class _Raw:
    """One file with everything that it extends, before `${configDir}` is replaced."""

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
        """The files that `extends` names; later ones replace earlier ones."""
        if extends is None:
            return []
        names = extends if isinstance(extends, list) else [extends]
        bases = []
        for name in names:
            if not isinstance(name, str):
                self._disk.say(f"{path}: extends contains {name!r} where a text is expected; it is ignored.")
                continue
            base = extended_file(name, folder_of(path), self._disk)
            if base is None:
                self._disk.say(f"{path} extends {name}, which is not found; it is ignored.")
            elif base in above:
                circle = " -> ".join((*above[above.index(base) :], base))
                self._disk.say(f"{path} extends {name} in a circle ({circle}); it is not followed again.")
            elif self._left <= 0:
                self._disk.say(f"{path} extends {name} after more than {MAX_EXTENDS} files; it is ignored.")
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
                self._disk.say(f"{path}: {key} is not a list; it is ignored.")
                continue
            for item in value:
                if not isinstance(item, str):
                    self._disk.say(f"{path}: {key} contains {item!r} where a text is expected; it is ignored.")
            folder = folder_of(path)
            found[key] = [_located(item, folder) for item in value if isinstance(item, str)]
        return found

    def _own_options(self, value: object, path: str, folder: str) -> dict[str, object]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._disk.say(f"{path}: compilerOptions is not an object; it is ignored.")
            return {}
        options = dict(value)
        for name in (*_PATH_OPTIONS, *_PATH_LIST_OPTIONS):
            if name in options:
                options[name] = _map_strings(options[name], lambda text: _located(text, folder))
        if options.get("paths") is not None:
            options["pathsBase"] = folder  # the base of the targets, unless there is a baseUrl
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
                self._disk.say(f'{path}: references contains {reference!r}, expected {{"path": ...}}; it is ignored.')
        return found


def _located(path: str, folder: str) -> str:
    """The path in a file in `folder` made absolute, unless it begins with CONFIG_DIR; `..` is not resolved."""
    path = path.replace("\\", "/")
    return path if path.startswith(CONFIG_DIR) or rooted(path) else f"{folder.rstrip('/')}/{path}"


def _placed_all(paths: list[str] | None, folder: str) -> tuple[str, ...] | None:
    return None if paths is None else tuple(_placed(path, folder) for path in paths)


def _placed(path: str, folder: str) -> str:
    return absolute(f"./{path[len(CONFIG_DIR) :]}", folder) if path.startswith(CONFIG_DIR) else path


def _map_strings(value: object, change: Callable[[str], str], depth: int = 3) -> object:
    """An option with each text in it changed; `paths`, an object of lists, is the deepest one."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list) and depth:
        return [_map_strings(item, change, depth - 1) for item in value]
    if isinstance(value, dict) and depth:
        return {key: _map_strings(item, change, depth - 1) for key, item in value.items()}
    return value


def extended_file(name: str, folder: str, disk: Disk) -> str | None:
    """The file of `extends: name` in a configuration in `folder`."""
    if rooted(name) or name.startswith(("./", "../")):
        return _json_file(absolute(name, folder), disk)
    if not name:
        return None
    if is_relative(name):
        return _json_file(f"{absolute(name, folder)}/tsconfig", disk)
    for above in upwards(folder):
        if name_of(above) != "node_modules" and disk.has(modules := f"{above.rstrip('/')}/node_modules", folder=True):
            found = _extended_in_package(name, modules, disk)
            if found is not None:
                return disk.real(found)
    return None


def _extended_in_package(name: str, modules: str, disk: Disk) -> str | None:
    package_name, inside = split_name(name)
    package_folder = f"{modules}/{package_name}"
    package = disk.package(package_folder) or {}
    if package.get("exports"):
        targets = export_targets(package["exports"], inside, _EXTENDS_CONDITIONS) or ()
        paths = (absolute(target, package_folder) for target in targets)
        return next((path for path in paths if disk.has(path, folder=False)), None)
    candidate = absolute(name, modules)
    field = None if inside else package.get("tsconfig")
    named = absolute(field, package_folder) if isinstance(field, str) else None
    return (
        _json_file(candidate, disk)
        or (named and (_json_file(named, disk) or _json_file(f"{named}/tsconfig", disk)))
        or _json_file(f"{candidate}/tsconfig", disk)
    )


def _json_file(path: str, disk: Disk) -> str | None:
    """The path, or the path with `.json` added."""
    if path.endswith(".json") and disk.has(path, folder=False):
        return path
    return found if disk.has(found := f"{path}.json", folder=False) else None


class TsOptions(Value):
    resolution: ResolutionMode
    module: str  # in lower case; the default if it is not given
    allow_js: bool
    json: bool
    jsx: bool
    jsx_import: str | None  # the module that compiled JSX imports
    arbitrary_extensions: bool
    follows_imports: bool
    preserves_links: bool
    base_url: str | None
    paths: Mapping[str, tuple[str, ...]]
    paths_base: str
    root_dirs: tuple[str, ...]
    suffixes: tuple[str, ...]
    conditions: tuple[str, ...]
    exports: bool
    imports: bool
    type_roots: tuple[str, ...] | None
    types: tuple[str, ...] | None  # None means every package in the type roots
    out_folders: tuple[str, ...]  # outDir and declarationDir
    declarations_folder: str | None  # where declaration files are written; None: next to the sources
    root_folder: str  # the folder whose structure the out folders repeat

    @property
    def node(self) -> bool:
        """Whether names are resolved by the format of the importing file."""
        return self.resolution in (ResolutionMode.NODE16, ResolutionMode.NODENEXT)


def read_options(config: TsConfig, version: int) -> TsOptions:
    """The options of a configuration for a major version of TypeScript."""
    raw = config.options
    module = _module(raw, version)
    resolution = _resolution(raw, module, version)
    modern = resolution in (ResolutionMode.NODE16, ResolutionMode.NODENEXT, ResolutionMode.BUNDLER)
    base_url = _text(raw, "baseUrl") if version < 7 else None
    out_folder, declarations = _folder(raw, "outDir"), _folder(raw, "declarationDir")
    js = _flag(raw, "allowJs")
    return TsOptions(
        resolution=resolution,
        module=module,
        allow_js=_flag(raw, "checkJs") is True if js is None else js,
        json=_json(raw, module, resolution),
        jsx=_text(raw, "jsx") is not None,
        jsx_import=_jsx_import(raw),
        arbitrary_extensions=_flag(raw, "allowArbitraryExtensions") is True,
        follows_imports=_flag(raw, "noResolve") is not True,
        preserves_links=_flag(raw, "preserveSymlinks") is True,
        base_url=absolute(base_url, config.folder) if base_url is not None else None,
        paths=_paths(raw.get("paths")),
        paths_base=absolute(base_url or _text(raw, "pathsBase") or config.folder, config.folder),
        root_dirs=tuple(absolute(each, config.folder) for each in _texts(raw, "rootDirs") or ()),
        suffixes=_texts(raw, "moduleSuffixes") or ("",),
        conditions=_texts(raw, "customConditions") or (),
        exports=modern and _flag(raw, "resolvePackageJsonExports") is not False,
        imports=modern and _flag(raw, "resolvePackageJsonImports") is not False,
        type_roots=_texts(raw, "typeRoots"),
        types=_types(raw, version),
        out_folders=tuple(folder for folder in (out_folder, declarations) if folder is not None),
        declarations_folder=declarations or out_folder,
        root_folder=_folder(raw, "rootDir") or config.folder,
    )


def _module(raw: Mapping[str, object], version: int) -> str:
    known = _ES_MODULES | _NODE_MODULES | {"commonjs", "nodenext", "preserve"}
    module = (_text(raw, "module") or "").lower()
    if module in known or (module in _OLD_MODULES and version < 7):
        return module
    target = (_text(raw, "target") or "").lower()
    if target in _OLD_TARGETS or (not target and version < 6):
        return "commonjs"
    return "es2015"


def _resolution(raw: Mapping[str, object], module: str, version: int) -> ResolutionMode:
    written = _RESOLUTIONS.get((_text(raw, "moduleResolution") or "").lower())
    if written is not None and (version < 7 or written not in (ResolutionMode.CLASSIC, ResolutionMode.NODE10)):
        return written
    if module == "nodenext":
        return ResolutionMode.NODENEXT
    if module in _NODE_MODULES:
        return ResolutionMode.NODE16
    if module in _OLD_MODULES:
        return ResolutionMode.CLASSIC
    if version >= 6 or module == "preserve":
        return ResolutionMode.BUNDLER
    return ResolutionMode.NODE10 if module == "commonjs" else ResolutionMode.CLASSIC


def _json(raw: Mapping[str, object], module: str, resolution: ResolutionMode) -> bool:
    written = _flag(raw, "resolveJsonModule")
    if written is not None:
        return written
    return module in ("node20", "nodenext") or resolution is ResolutionMode.BUNDLER


def _jsx_import(raw: Mapping[str, object]) -> str | None:
    jsx = (_text(raw, "jsx") or "").lower()
    source = _text(raw, "jsxImportSource")
    if source is None and not jsx.startswith("react-jsx"):
        return None
    return f"{source or 'react'}/{'jsx-dev-runtime' if jsx == 'react-jsxdev' else 'jsx-runtime'}"


def _types(raw: Mapping[str, object], version: int) -> tuple[str, ...] | None:
    """The option `types`. Every package of the type roots is the default before version 6, and is "*" since then."""
    types = _texts(raw, "types")
    if types is None:
        return None if version < 6 else ()
    return None if version >= 6 and "*" in types else types


def _paths(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        return {}
    return {
        pattern: tuple(target for target in targets if isinstance(target, str))
        for pattern, targets in value.items()
        if isinstance(targets, list) and pattern.count("*") <= 1
    }


def _folder(raw: Mapping[str, object], name: str) -> str | None:
    text = _text(raw, name)
    return absolute(text, "/") if text else None


def _text(raw: Mapping[str, object], name: str) -> str | None:
    value = raw.get(name)
    return value if isinstance(value, str) else None


def _texts(raw: Mapping[str, object], name: str) -> tuple[str, ...] | None:
    value = raw.get(name)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else None


def _flag(raw: Mapping[str, object], name: str) -> bool | None:
    value = raw.get(name)
    return value if isinstance(value, bool) else None
