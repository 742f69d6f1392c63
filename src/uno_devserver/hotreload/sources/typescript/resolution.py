"""Resolves imports to files in each mode of TypeScript: like Node, like bundlers, and the two old ones.

Packages in `node_modules` are not searched, except those that are links, as in workspaces: they are found by their real
paths.
"""

from __future__ import annotations

from enum import Enum

from .disk import DECLARATIONS, IN_NODE_MODULES, absolute, extension_of, is_relative, name_of, rooted, upwards, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .disk import Disk
    from .tsconfig import TsOptions

_FOREIGN = ""  # the result for an import that a foreign package provides
MAX_CONDITIONS_DEPTH = 30  # nested conditions; usually there are at most three levels
_FORBIDDEN = frozenset(("..", ".", "node_modules"))  # a target stays inside its package
MAX_DETOURS = 10  # from an entry of `imports` to another module

_WRITTEN_FROM = {  # the extension of an output, and those of its possible sources
    **dict.fromkeys((".d.mts", ".mjs"), (".mts", ".mjs")),
    **dict.fromkeys((".d.cts", ".cjs"), (".cts", ".cjs")),
    ".json": (".json",),
    **dict.fromkeys((".d.ts", ".js"), (".tsx", ".ts", ".jsx", ".js")),
}


# The kinds of files; numbers, because each import needs sets of them.
SOURCE, JS, DECLARATION, JSON = 1, 2, 4, 8
TYPED = SOURCE | DECLARATION
KIND_OF = {
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts"), SOURCE),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), JS),
    **dict.fromkeys(DECLARATIONS, DECLARATION),
    ".json": JSON,
}
# For each extension in an import: those that the file may have, in the order of the attempts.
_INSTEAD = {
    **dict.fromkeys((".mjs", ".mts", ".d.mts"), ((SOURCE, ".mts"), (DECLARATION, ".d.mts"), (JS, ".mjs"))),
    **dict.fromkeys((".cjs", ".cts", ".d.cts"), ((SOURCE, ".cts"), (DECLARATION, ".d.cts"), (JS, ".cjs"))),
    **dict.fromkeys(
        (".tsx", ".jsx"), ((SOURCE, ".tsx"), (SOURCE, ".ts"), (DECLARATION, ".d.ts"), (JS, ".jsx"), (JS, ".js"))
    ),
    **dict.fromkeys(
        (".ts", ".d.ts", ".js", ""),
        ((SOURCE, ".ts"), (SOURCE, ".tsx"), (DECLARATION, ".d.ts"), (JS, ".js"), (JS, ".jsx")),
    ),
    ".json": ((DECLARATION, ".d.json.ts"), (JSON, ".json")),
}


class ResolutionMode(Enum):
    """The values of `moduleResolution`."""

    CLASSIC = "classic"
    NODE10 = "node10"
    NODE16 = "node16"
    NODENEXT = "nodenext"
    BUNDLER = "bundler"


class Resolver:
    """Resolves the imports of one program."""

    def __init__(self, options: TsOptions, config_path: str, disk: Disk) -> None:
        self.options = options
        self.config_path = config_path
        self.disk = disk
        self._known: dict[tuple[str, str, bool], str | None] = {}
        self.linked: dict[str, bool | None] = {}

    def module(self, name: str, folder: str, *, esm: bool) -> str | None:
        """The file that a file in `folder` imports by this name; None if there is none or a foreign package has it.

        `esm` tells whether it is imported as an ES module.
        """
        key = (name, folder, esm)
        if key not in self._known:
            self._known[key] = self._resolve(name, folder, esm)
        return self._known[key]

    def types(self, name: str, folder: str, *, only_roots: bool = False) -> str | None:
        """The file of a type package: from the type roots, otherwise as a module."""
        attempt = _Attempt(self, DECLARATION, esm=False, strict=False)
        found = attempt.in_type_roots(name)
        if found is None and not only_roots:
            is_path = is_relative(name) or rooted(name)
            found = attempt.path(name, folder) if is_path else attempt.package(name, folder)
        return self._settled(name, found)

    def _resolve(self, name: str, folder: str, esm: bool) -> str | None:
        options = self.options
        every = TYPED | JS | (JSON if options.json else 0)
        in_two = options.resolution in (ResolutionMode.CLASSIC, ResolutionMode.NODE10)
        for kinds in (TYPED, every & ~TYPED) if in_two else (every,):
            attempt = _Attempt(self, kinds, esm=esm, strict=esm and options.node)
            found = (
                attempt.classic(name, folder)
                if options.resolution is ResolutionMode.CLASSIC
                else attempt.run(name, folder)
            )
            if found is not None:
                return self._settled(name, found)
        return None

    def _settled(self, name: str, found: str | None) -> str | None:
        if not found or is_relative(name) or rooted(name):
            return found or None
        if IN_NODE_MODULES in found and not self.options.preserves_links:
            found = self.disk.real(found)
        return None if IN_NODE_MODULES in found else found


class _Attempt:
    """One search for files of some kinds, in all places where a name may lead."""

    def __init__(self, resolver: Resolver, kinds: int, *, esm: bool, strict: bool, detours: int = MAX_DETOURS) -> None:
        self._resolver = resolver
        self._options = resolver.options
        self._disk = resolver.disk
        self._files = Lookup(resolver.options, resolver.disk, kinds, strict=strict)
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
        """Resolve a name in the oldest mode: as a file in the folder and in each of its parents."""
        found = self._by_settings(name, folder)
        if found is not None or is_relative(name) or rooted(name):
            return found or self._files.file(absolute(name, folder))
        for above in upwards(folder):
            found = self._files.file(absolute(name, above), lists_folder=False)
            if found is not None:
                return found
        return self.in_type_roots(name)

    def path(self, name: str, folder: str) -> str | None:
        """Resolve a name that is a path relative to the importing file."""
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
        """Search the nearest `node_modules` that has the package: first for sources and declarations in all of them."""
        for kinds in (self._files.kinds & TYPED, self._files.kinds & ~TYPED):
            for above in upwards(folder) if kinds else ():
                if name_of(above) == "node_modules":
                    continue
                modules = f"{above.rstrip('/')}/node_modules"
                linked = self._is_linked(modules, split_name(name)[0])
                if linked is False:
                    return _FOREIGN
                if linked:
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
        """Resolve a path with `rootDirs`, several folders that are treated as one."""
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
        """Try sources and declarations first, unless JavaScript is a source and the package is not a foreign one."""
        own = self._options.allow_js and IN_NODE_MODULES not in f"{package_folder}/"
        for kinds in (self._files.kinds,) if own else (self._files.kinds & TYPED, self._files.kinds & ~TYPED):
            for target in export_targets(exports, inside, self._conditions()) or () if kinds else ():
                found = self._like(kinds)._target(target, package_folder) if target.startswith("./") else None
                if found is not None:
                    return found
        return None

    def _target(self, target: str, package_folder: str) -> str | None:
        """The file of a target of `exports` or `imports`; in a package of our own, the source of an output."""
        place = absolute(target, package_folder)
        return self._source_of(place, package_folder) or self._files.named(place)

    def _source_of(self, output: str, package_folder: str) -> str | None:
        options = self._options
        if IN_NODE_MODULES in output or not within(package_folder, self._resolver.config_path):
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
        node = () if options.resolution is ResolutionMode.BUNDLER else ("node",)
        return ("import" if self._esm else "require", "types", *node, *options.conditions)

    def _like(self, kinds: int) -> _Attempt:
        return _Attempt(self._resolver, kinds, esm=self._esm, strict=self._files.strict, detours=self._detours)

    def _is_linked(self, modules: str, package: str) -> bool | None:
        """Whether a package in `modules` is a link to another place; None if there is no such package."""
        known = self._resolver.linked
        place = f"{modules}/{package}"
        if place not in known:
            if not self._disk.has(modules, folder=True) or not self._disk.is_folder(place):
                known[place] = None
            else:
                known[place] = IN_NODE_MODULES not in f"{self._disk.real(place)}/"
        return known[place]


def _best_pattern(name: str, patterns: Mapping[str, object]) -> str | None:
    """The pattern that equals the name, otherwise the matching one with the longest literal start."""
    if name in patterns and "*" not in name:
        return name
    best: str | None = None
    for pattern in patterns:
        head, star, tail = pattern.partition("*")
        fits = star and len(name) >= len(head) + len(tail) and name.startswith(head) and name.endswith(tail)
        if fits and (best is None or len(head) > best.index("*")):
            best = pattern
    return best


class Lookup:
    """Finds files of the given kinds. If `strict`, names must be complete, as Node requires for ES modules."""

    def __init__(self, options: TsOptions, disk: Disk, kinds: int, *, strict: bool) -> None:
        self.kinds = kinds
        self.strict = strict
        self._options = options
        self._disk = disk

    def like(self, kinds: int, *, strict: bool | None = None) -> Lookup:
        return Lookup(self._options, self._disk, kinds, strict=self.strict if strict is None else strict)

    def place(self, place: str, *, is_folder: bool = False) -> str | None:
        """Find a file, or a folder with an index or with a `package.json` that names a file."""
        found = None if is_folder else self.file(place)
        folders = not self.strict and self._options.resolution is not ResolutionMode.CLASSIC
        return self.folder(place) if found is None and folders and self._disk.is_folder(place) else found

    def file(self, place: str, *, lists_folder: bool = True) -> str | None:
        """Find a file. If `lists_folder`, its folder is read; otherwise only the possible names are tried."""
        found = self._replaced(place, lists_folder)
        return self._extended(place, "", lists_folder) if found is None and not self.strict else found

    def folder(self, place: str) -> str | None:
        """The file that the folder's `package.json` names, otherwise its index."""
        package = self._disk.package(place) or {}
        entry = self._entry(package)
        found = self._by_entry(absolute(entry, place), package) if entry is not None else None
        return self.file(f"{place}/index") if found is None and not self.strict else found

    def named(self, place: str) -> str | None:
        """Find a file that a `package.json` names: a source exactly as written, or the source of an output."""
        if self.kinds & KIND_OF.get(extension_of(place), 0) & TYPED:
            return place if self._disk.is_file(place) else None
        return self._replaced(place, True)

    def _entry(self, package: dict[str, object]) -> str | None:
        fields = ("typings", "types", "main") if self.kinds & DECLARATION else ("main",)
        values = (package.get(field) for field in fields if self.kinds != JSON)
        return next((value for value in values if isinstance(value, str) and value), None)

    def _by_entry(self, path: str, package: dict[str, object]) -> str | None:
        found = self.named(path)
        if found is not None:
            return found
        kinds = TYPED if self.kinds == DECLARATION else self.kinds
        loose = self.like(kinds, strict=self.strict and package.get("type") == "module")
        found = loose.file(path)
        index = found is None and not loose.strict and self._disk.is_folder(path)
        return loose.file(f"{path}/index") if index else found

    def _replaced(self, place: str, lists_folder: bool) -> str | None:
        if "." not in name_of(place):
            return None
        extension = extension_of(place) or place[place.rindex(".") :]
        return self._extended(place[: len(place) - len(extension)], extension, lists_folder)

    def _extended(self, stem: str, extension: str, lists_folder: bool) -> str | None:
        for kind, added in _INSTEAD.get(extension) or ((DECLARATION, f".d{extension}.ts"),):
            if self.kinds & kind:
                for suffix in self._options.suffixes:
                    path = f"{stem}{suffix}{added}"
                    if self._disk.is_file(path) if lists_folder else self._disk.has(path, folder=False):
                        return path
        return None


def split_name(name: str) -> tuple[str, str]:
    """Split the name of a module into the name of its package and the path inside."""
    parts = name.split("/", 2 if name.startswith("@") else 1)
    head = 2 if name.startswith("@") else 1
    return "/".join(parts[:head]), "/".join(parts[head:])


def export_targets(exports: object, path: str, conditions: Sequence[str]) -> list[str] | None:
    """The targets for a path inside the package ('' is the package itself), in the order of the attempts."""
    if not path:
        if isinstance(exports, dict) and any(key.startswith(".") for key in exports):
            exports = exports.get(".")
        return _targets(exports, None, conditions) if exports else None
    if not isinstance(exports, dict) or not all(key.startswith(".") for key in exports):
        return None
    return mapped_targets(exports, f"./{path}", conditions)


def mapped_targets(table: Mapping[str, object], name: str, conditions: Sequence[str]) -> list[str] | None:
    """The targets of a name in a map whose keys may contain one `*` or end with a slash."""
    if not name.endswith("/") and "*" not in name and name in table:
        return _targets(table[name], None, conditions)
    for key in sorted((key for key in table if key.count("*") == 1 or key.endswith("/")), key=_specificity):
        head, star, tail = key.partition("*")
        if star and name.startswith(head) and name.endswith(tail) and len(name) >= len(key):
            middle = name[len(head) : len(name) - len(tail)]
            return [] if _leaves_package(middle) else _targets(table[key], middle, conditions)
        if not star and name.startswith(key):
            rest = name[len(key) :]
            found = _targets(table[key], None, conditions)
            return [] if _leaves_package(rest) else [target + rest for target in found if target.endswith("/")]
    return None


def _specificity(key: str) -> tuple[int, int]:
    """A sort key: longer literal starts first, then longer keys."""
    star = key.find("*")
    return (-(len(key) if star < 0 else star + 1), -len(key))


def _targets(target: object, middle: str | None, conditions: Sequence[str]) -> list[str]:
    """The paths in a target whose conditions are met."""
    found: list[str] = []
    _collect(target, middle, conditions, found, MAX_CONDITIONS_DEPTH)
    return found


def _collect(target: object, middle: str | None, conditions: Sequence[str], found: list[str], depth: int) -> bool:
    """Collect the paths in a target; return whether the search ends here, because null hides what follows."""
    if target is None or depth == 0:
        return True
    if isinstance(target, str):
        if not _leaves_package(target.removeprefix("./")):
            found.append(target.replace("*", middle) if middle is not None else target)
        return False
    if isinstance(target, dict):
        inside = [inner for condition, inner in target.items() if condition == "default" or condition in conditions]
    else:
        inside = target if isinstance(target, list) else []
    return any(_collect(inner, middle, conditions, found, depth - 1) for inner in inside)


def _leaves_package(path: str) -> bool:
    return not _FORBIDDEN.isdisjoint(path.split("/"))
