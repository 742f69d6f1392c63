"""The compiler options that decide which files belong to a program, with the defaults of the compiler's version.

TypeScript 6 changed the defaults (modules are ES modules, resolved as bundlers do), and 7 removed what 6 had declared
old: a removed setting counts as not made, as the compiler itself goes on after reporting it.
"""

from __future__ import annotations

from enum import Enum

from ...system.values import Value
from .ts_paths import absolute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .tsconfig import TsConfig

NEWEST = 7  # taken where the package has no TypeScript of its own


class Resolution(Enum):
    """How a module's name becomes a file."""

    CLASSIC = "classic"
    NODE10 = "node10"
    NODE16 = "node16"
    NODENEXT = "nodenext"
    BUNDLER = "bundler"


_RESOLUTIONS = {each.value: each for each in Resolution} | {"node": Resolution.NODE10}
_OLD_MODULES = frozenset(("none", "amd", "umd", "system"))
_ES_MODULES = frozenset(("es6", "es2015", "es2020", "es2022", "esnext"))
_NODE_MODULES = frozenset(("node16", "node18", "node20"))
_OLD_TARGETS = frozenset(("es3", "es5"))


class Options(Value):
    resolution: Resolution
    module: str  # as written, in small letters; the default where nothing is written
    allow_js: bool
    json: bool
    jsx: bool
    jsx_import: str | None  # the module that compiled JSX imports by itself
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
    types: tuple[str, ...] | None  # None: every package in the type roots
    out_folders: tuple[str, ...]  # outDir and declarationDir
    declarations_folder: str | None  # where declaration files are written; None: beside the sources
    root_folder: str  # what the out folders mirror

    @property
    def node(self) -> bool:
        """Whether the format of the importing file decides how a name is resolved."""
        return self.resolution in (Resolution.NODE16, Resolution.NODENEXT)


def read_options(config: TsConfig, version: int) -> Options:
    """The options of a configuration for a major version of TypeScript."""
    raw = config.options
    module = _module(raw, version)
    resolution = _resolution(raw, module, version)
    modern = resolution in (Resolution.NODE16, Resolution.NODENEXT, Resolution.BUNDLER)
    base_url = _text(raw, "baseUrl") if version < 7 else None
    out_folder, declarations = _folder(raw, "outDir"), _folder(raw, "declarationDir")
    js = _flag(raw, "allowJs")
    return Options(
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


def _resolution(raw: Mapping[str, object], module: str, version: int) -> Resolution:
    written = _RESOLUTIONS.get((_text(raw, "moduleResolution") or "").lower())
    if written is not None and (version < 7 or written not in (Resolution.CLASSIC, Resolution.NODE10)):
        return written
    if module == "nodenext":
        return Resolution.NODENEXT
    if module in _NODE_MODULES:
        return Resolution.NODE16
    if module in _OLD_MODULES:
        return Resolution.CLASSIC
    if version >= 6 or module == "preserve":
        return Resolution.BUNDLER
    return Resolution.NODE10 if module == "commonjs" else Resolution.CLASSIC


def _json(raw: Mapping[str, object], module: str, resolution: Resolution) -> bool:
    written = _flag(raw, "resolveJsonModule")
    if written is not None:
        return written
    return module in ("node20", "nodenext") or resolution is Resolution.BUNDLER


def _jsx_import(raw: Mapping[str, object]) -> str | None:
    jsx = (_text(raw, "jsx") or "").lower()
    source = _text(raw, "jsxImportSource")
    if source is None and not jsx.startswith("react-jsx"):
        return None
    return f"{source or 'react'}/{'jsx-dev-runtime' if jsx == 'react-jsxdev' else 'jsx-runtime'}"


def _types(raw: Mapping[str, object], version: int) -> tuple[str, ...] | None:
    """Before version 6 every package that the type roots have was taken; now that has to be asked for."""
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
