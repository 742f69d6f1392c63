"""Which file does an import mean? TypeScript's ways of finding out: as Node does, as bundlers do, and the old ones.

A package that lies in `node_modules` is somebody else's code and is not looked into; one that is only linked there, as
workspaces do it, is found by its real path.
"""

from __future__ import annotations

from .ts_lookup import DECLARATION, JS, JSON, KIND_OF, TYPED, Lookup
from .ts_options import Resolution
from .ts_packages import export_targets, mapped_targets, split_name
from .ts_paths import (
    IN_NODE_MODULES,
    absolute,
    extension_of,
    folder_of,
    is_relative,
    name_of,
    rooted,
    within,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .ts_disk import Disk
    from .ts_options import Options

_FOREIGN = ""  # found, in a package that is not ours
MAX_DETOURS = 10  # an entry of `imports` may name another module, and that another one

_WRITTEN_FROM = {  # by the extension of an output: those of the file that it may have been made from
    **dict.fromkeys((".d.mts", ".mjs"), (".mts", ".mjs")),
    **dict.fromkeys((".d.cts", ".cjs"), (".cts", ".cjs")),
    ".json": (".json",),
    **dict.fromkeys((".d.ts", ".js"), (".tsx", ".ts", ".jsx", ".js")),
}


class Resolver:
    """Resolves the imports of one program; `esm` is the format in which the importing file asks."""

    def __init__(self, options: Options, config_path: str, disk: Disk) -> None:
        self._options = options
        self._config_path = config_path
        self._disk = disk
        self._known: dict[tuple[str, str, bool], str | None] = {}
        self._ours: dict[str, bool | None] = {}

    def module(self, name: str, folder: str, *, esm: bool) -> str | None:
        """The file that a module's name means in a file in `folder`; None where there is none, or it is not ours."""
        key = (name, folder, esm)
        if key not in self._known:
            self._known[key] = self._resolve(name, folder, esm)
        return self._known[key]

    def types(self, name: str, folder: str, *, only_roots: bool = False) -> str | None:
        """The file that a package of types means: from the type roots, else as a module."""
        attempt = _Attempt(self, DECLARATION, esm=False, strict=False)
        found = attempt.in_type_roots(name)
        if found is None and not only_roots:
            is_path = is_relative(name) or rooted(name)
            found = attempt.path(name, folder) if is_path else attempt.package(name, folder)
        return self._settled(name, found)

    def _resolve(self, name: str, folder: str, esm: bool) -> str | None:
        options = self._options
        every = TYPED | JS | (JSON if options.json else 0)
        in_two = options.resolution in (Resolution.CLASSIC, Resolution.NODE10)
        for kinds in (TYPED, every & ~TYPED) if in_two else (every,):
            attempt = _Attempt(self, kinds, esm=esm, strict=esm and options.node)
            found = (
                attempt.classic(name, folder) if options.resolution is Resolution.CLASSIC else attempt.run(name, folder)
            )
            if found is not None:
                return self._settled(name, found)
        return None

    def _settled(self, name: str, found: str | None) -> str | None:
        if not found or is_relative(name) or rooted(name):
            return found or None
        if IN_NODE_MODULES in found and not self._options.preserves_links:
            found = self._disk.real(found)
        return None if IN_NODE_MODULES in found else found


class _Attempt:
    """One search through all places that a name may mean, for files of some kinds."""

    def __init__(self, resolver: Resolver, kinds: int, *, esm: bool, strict: bool, detours: int = MAX_DETOURS) -> None:
        self._resolver = resolver
        self._options = resolver._options
        self._disk = resolver._disk
        self._files = Lookup(resolver._options, resolver._disk, kinds, strict=strict)
        self._esm = esm
        self._detours = detours

    def run(self, name: str, folder: str) -> str | None:
        found = self._by_settings(name, folder)
        if found is not None:
            return found
        if is_relative(name) or rooted(name):
            return self.path(name, folder)
        if self._options.imports and name.startswith("#"):
            found = self._by_imports(name, folder)
            if found is not None:
                return found
        if self._options.exports:
            scope = self._disk.scope(folder)
            package = (scope is not None and self._disk.package(scope)) or {}
            own = package.get("name")
            if scope is not None and package.get("exports") and isinstance(own, str) and within(own, name):
                found = self._by_exports(package["exports"], scope, name[len(own) + 1 :])
                if found is not None:
                    return found
        if ":" in name:
            return None
        found = self.package(name, folder)
        return self.in_type_roots(name) if found is None else found

    def classic(self, name: str, folder: str) -> str | None:
        """Before there were packages: the folders upwards, each as if the name were a file in it."""
        found = self._by_settings(name, folder)
        if found is not None or is_relative(name) or rooted(name):
            return found or self._files.file(absolute(name, folder))
        for above in _upwards(folder):
            found = self._files.file(absolute(name, above), lists_folder=False)
            if found is not None:
                return found
        return self.in_type_roots(name)

    def path(self, name: str, folder: str) -> str | None:
        """A name that leads from the importing file's folder."""
        is_folder = name.endswith("/") or name_of(name) in (".", "..")
        return self._files.place(absolute(name, folder), is_folder=is_folder)

    def in_type_roots(self, name: str) -> str | None:
        if not self._files.kinds & DECLARATION:
            return None
        for root in self._options.type_roots or ():
            files = self._files.like(DECLARATION, strict=False)
            place = absolute(name, root)
            found = files.file(place) or files.folder(place)
            if found is not None:
                return found
        return None

    def package(self, name: str, folder: str) -> str | None:
        """In the nearest `node_modules` that has it: sources and declarations first, wherever they are."""
        for kinds in (self._files.kinds & TYPED, self._files.kinds & ~TYPED):
            for above in _upwards(folder) if kinds else ():
                if name_of(above) == "node_modules":
                    continue
                modules = f"{above.rstrip('/')}/node_modules"
                ours = self._is_ours(modules, split_name(name)[0])
                if ours is False:
                    return _FOREIGN
                if ours:
                    found = self._like(kinds)._in_package(name, modules)
                    if found is not None:
                        return found
        return None

    def _by_settings(self, name: str, folder: str) -> str | None:
        options = self._options
        if options.paths and not is_relative(name):
            pattern = _best_pattern(name, options.paths)
            if pattern is not None:
                return self._by_paths(name, pattern)
        if not is_relative(name) and not rooted(name):
            return self._files.place(absolute(name, options.base_url)) if options.base_url else None
        return self._by_root_dirs(absolute(name, folder)) if options.root_dirs else None

    def _by_paths(self, name: str, pattern: str) -> str | None:
        head, _, tail = pattern.partition("*")
        middle = name[len(head) : len(name) - len(tail)]
        for target in self._options.paths[pattern]:
            place = absolute(target.replace("*", middle, 1) if "*" in pattern else target, self._options.paths_base)
            if extension_of(target) and self._disk.is_file(place):
                return place
            found = self._files.place(place)
            if found is not None:
                return found
        return None

    def _by_root_dirs(self, place: str) -> str | None:
        """Several folders that count as one."""
        roots = self._options.root_dirs
        own = max((root for root in roots if within(root, place) and root != place), key=len, default=None)
        if own is None:
            return None
        inside = place[len(own) :].lstrip("/")
        places = (place, *(absolute(inside, root) for root in roots if root != own))
        return next((found for each in places if (found := self._files.place(each)) is not None), None)

    def _by_imports(self, name: str, folder: str) -> str | None:
        scope = self._disk.scope(folder)
        table = (self._disk.package(scope) or {}).get("imports") if scope is not None else None
        if scope is None or not isinstance(table, dict) or name == "#":
            return None
        for target in mapped_targets(table, name, self._conditions()) or ():
            if target.startswith("./"):
                found = self._target(target, scope)
            elif self._detours and not target.startswith(("../", "/")):
                detour = _Attempt(
                    self._resolver,
                    self._files.kinds,
                    esm=self._esm,
                    strict=self._files.strict,
                    detours=self._detours - 1,
                )
                found = detour.run(target, scope)
            else:
                found = None
            if found is not None:
                return found
        return None

    def _by_exports(self, exports: object, package_folder: str, inside: str) -> str | None:
        """Sources and declarations first, unless JavaScript counts as a source and it is our own package."""
        own = self._options.allow_js and IN_NODE_MODULES not in f"{package_folder}/"
        for kinds in (self._files.kinds,) if own else (self._files.kinds & TYPED, self._files.kinds & ~TYPED):
            for target in export_targets(exports, inside, self._conditions()) or () if kinds else ():
                found = self._like(kinds)._target(target, package_folder) if target.startswith("./") else None
                if found is not None:
                    return found
        return None

    def _target(self, target: str, package_folder: str) -> str | None:
        """A target of `exports` or `imports`: of our own package, the source in place of what is built from it."""
        place = absolute(target, package_folder)
        return self._source_of(place, package_folder) or self._files.named(place)

    def _source_of(self, output: str, package_folder: str) -> str | None:
        options = self._options
        if IN_NODE_MODULES in output or not within(package_folder, self._resolver._config_path):
            return None
        for folder in reversed(options.out_folders):
            if not within(folder, output):
                continue
            base = absolute(output[len(folder) + 1 :], options.root_folder)
            extension = next((each for each in _WRITTEN_FROM if base.endswith(each)), None)
            for source in _WRITTEN_FROM[extension] if extension else ():
                place = base.removesuffix(extension or "") + source
                if self._files.kinds & KIND_OF[source] and self._disk.is_file(place):
                    return self._files.named(place)
        return None

    def _in_package(self, name: str, modules: str) -> str | None:
        package_name, inside = split_name(name)
        place = f"{modules}/{name}"
        root = f"{modules}/{package_name}"
        package = self._disk.package(root) or {}
        if package.get("exports") and self._options.exports:
            return self._by_exports(package["exports"], root, inside)
        if inside or not self._files.strict:
            found = self._files.file(place)
            if found is not None:
                return found
        if self._files.strict and not inside:
            return self._files.folder(place) or self._files.file(f"{place}/index.js")
        return self._files.folder(place)

    def _conditions(self) -> tuple[str, ...]:
        options = self._options
        node = () if options.resolution is Resolution.BUNDLER else ("node",)
        return ("import" if self._esm else "require", "types", *node, *options.conditions)

    def _like(self, kinds: int) -> _Attempt:
        return _Attempt(self._resolver, kinds, esm=self._esm, strict=self._files.strict, detours=self._detours)

    def _is_ours(self, modules: str, package: str) -> bool | None:
        """Whether a package in `modules` is only linked there and lies elsewhere; None if it is not there."""
        known = self._resolver._ours
        place = f"{modules}/{package}"
        if place not in known:
            if not self._disk.has(modules, folder=True) or not self._disk.is_folder(place):
                known[place] = None
            else:
                known[place] = IN_NODE_MODULES not in f"{self._disk.real(place)}/"
        return known[place]


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = folder_of(folder)
        if above == folder:
            return
        folder = above


def _best_pattern(name: str, patterns: Mapping[str, object]) -> str | None:
    """The pattern that is the name, else the one with the longest beginning."""
    if name in patterns and "*" not in name:
        return name
    best: str | None = None
    for pattern in patterns:
        head, star, tail = pattern.partition("*")
        fits = star and len(name) >= len(head) + len(tail) and name.startswith(head) and name.endswith(tail)
        if fits and (best is None or len(head) > best.index("*")):
            best = pattern
    return best
