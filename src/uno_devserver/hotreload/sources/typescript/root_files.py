"""The files that a configuration itself names: those in `files`, and those of `include` without `exclude`.

TypeScript's rules differ from those of a shell. `**` enters no hidden folder and no folder of packages; `*` and `?` at
the beginning of a name do not match a dot, and `*` does not match `.min.js`; a name without wildcard and dot is a
folder with everything below it; a file is left out if another file of its module is nearer to the source.
"""

from __future__ import annotations

import re

from ....system.values import Value
from .disk import ALL_GROUPS, TYPESCRIPT_GROUPS, EntryKind, absolute, extension_of, name_of, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .disk import Disk
    from .tsconfig import TsConfig, TsOptions

_NO_PACKAGES = r"(?!(?:node_modules|bower_components|jspm_packages)(?:/|$))"
# Wildcards in one name, and `**`: each one multiplies the time of a match, in TypeScript too. Usually there are two.
MAX_WILDCARDS = 3
_ENDS_WITH_ANY_DEPTH = re.compile(r"(?:^|/)\*\*/?$")


class _Usage(Value):
    """The regular expressions for the wildcards in one use of a pattern."""

    star: str
    any_depth: str
    skips_hidden: bool = True
    prefixes: bool = False  # whether the pattern also matches each parent of a match


_FILES = _Usage(r"(?:[^./]|\.(?!min\.js$))*", rf"(?:/{_NO_PACKAGES}[^/.][^/]*)*?")
_FOLDERS = _Usage("[^/]*", rf"(?:/{_NO_PACKAGES}[^/.][^/]*)*?", prefixes=True)
_EXCLUDED = _Usage("[^/]*", "(?:/.+?)?", skips_hidden=False)


def root_files(config: TsConfig, options: TsOptions, disk: Disk) -> list[str]:
    """The root files of the program, as absolute paths; those of `files` need not exist."""
    fold: Callable[[str], str] = str if disk.case_sensitive else str.lower
    literal = {fold(path): path for path in (absolute(file, config.folder) for file in config.files or ())}
    include = config.include
    if include is None and config.files is None:
        include = (f"{config.folder}/**/*",)
    exclude = options.out_folders if config.exclude is None else config.exclude
    groups = ALL_GROUPS if options.allow_js else TYPESCRIPT_GROUPS
    valid = [spec for spec in include or () if _is_valid(spec, config, disk, trailing=False)]
    search = _Search(config.folder, valid, [s for s in exclude if _is_valid(s, config, disk)], disk)
    extensions = tuple(extension for group in groups for extension in group)
    matching = search.run((*extensions, ".json") if options.json else extensions)

    chosen: dict[str, str] = {}
    for path in matching:
        key = fold(path)
        if path.endswith(".json"):
            if not search.names_json(path):
                continue
        else:
            group = _group_of(path, groups)
            if _is_shadowed(path, group, literal, chosen, fold):
                continue
            _drop_shadowed(path, group, chosen, fold)
        if key not in literal:
            chosen.setdefault(key, path)
    return [*literal.values(), *chosen.values()]


def _is_valid(spec: str, config: TsConfig, disk: Disk, *, trailing: bool = True) -> bool:
    if not trailing and _ENDS_WITH_ANY_DEPTH.search(spec):
        disk.say(f"{config.path}: the pattern {spec} ends with **, which matches no file; write **/* instead.")
        return False
    depth = 0 if spec.startswith("**/") else spec.find("/**/")
    if depth >= 0 and (len(spec) if spec.endswith("/..") else spec.rfind("/../")) > depth:
        disk.say(f"{config.path}: the pattern {spec} has .. after **, which TypeScript does not allow.")
        return False
    parts = spec.split("/")
    if max(parts.count("**"), *(part.count("*") for part in parts if part != "**"), 0) > MAX_WILDCARDS:
        disk.say(f"{config.path}: the pattern {spec[:100]} has more than {MAX_WILDCARDS} wildcards; it is ignored.")
        return False
    return True


class _Search:
    """Walks through the folders in which the patterns can match."""

    def __init__(self, folder: str, include: Sequence[str], exclude: Sequence[str], disk: Disk) -> None:
        self._disk = disk
        self._flags = 0 if disk.case_sensitive else re.IGNORECASE
        self._bases = _base_folders(folder, include)
        self._files = [re.compile(f"{text}$", self._flags) for spec in include if (text := _regex(spec, _FILES))]
        self._folders = self._joined(include, _FOLDERS, "$")
        self._excluded = self._joined(exclude, _EXCLUDED, "(?:$|/)")
        self._json = [
            re.compile(f"{text}$", self._flags)
            for spec in include
            if spec.endswith(".json") and (text := _regex(spec, _FILES))
        ]

    def run(self, extensions: tuple[str, ...]) -> list[str]:
        """The matching files in the order of TypeScript: by the first pattern that matches, then by folder and name."""
        if not self._files:
            return []
        found: list[list[str]] = [[] for _ in self._files]
        visited: set[str] = set()
        # Real paths show loops of links and second ways to a folder.
        waiting = [(base, self._disk.real(base)) for base in reversed(self._bases)]
        while waiting:
            folder, real = waiting.pop()
            if real in visited:
                continue
            visited.add(real)
            entries = self._disk.entries(folder)
            prefix = folder if folder.endswith("/") else f"{folder}/"
            below = []
            for name in sorted(entries):
                path = prefix + name
                if entries[name] is EntryKind.FILE:
                    if name.endswith(extensions) and not (self._excluded and self._excluded.match(path)):
                        which = next((index for index, each in enumerate(self._files) if each.match(path)), None)
                        if which is not None:
                            found[which].append(path)
                elif self._enters(path):
                    linked = entries[name] is EntryKind.LINKED_FOLDER
                    below.append((path, self._disk.real(path) if linked else f"{real.rstrip('/')}/{name}"))
            waiting.extend(reversed(below))
        return [path for each in found for path in each]

    def names_json(self, path: str) -> bool:
        return any(each.match(path) for each in self._json)

    def _enters(self, folder: str) -> bool:
        if self._folders is None or not self._folders.match(folder):
            return False
        return self._excluded is None or not self._excluded.match(folder)

    def _joined(self, specs: Sequence[str], usage: _Usage, end: str) -> re.Pattern[str] | None:
        texts = [f"(?:{text})" for spec in specs if (text := _regex(spec, usage))]
        return re.compile(f"(?:{'|'.join(texts)}){end}", self._flags) if texts else None


def _base_folders(folder: str, include: Sequence[str]) -> list[str]:
    """The folders where the walk begins: that of the configuration, and those outside of it that patterns name."""
    bases = [folder]
    for base in sorted(_base_of(absolute(spec, folder)) for spec in include):
        if not any(within(other, base) for other in bases):
            bases.append(base)
    return bases


def _base_of(spec: str) -> str:
    wildcard = min((place for place in (spec.find("*"), spec.find("?")) if place >= 0), default=-1)
    if wildcard >= 0:
        return spec[: spec.rfind("/", 0, wildcard)] or "/"
    return (spec[: spec.rfind("/")] or "/") if "." in name_of(spec) else spec


def _regex(spec: str, usage: _Usage) -> str | None:
    """A pattern as a regular expression for absolute paths."""
    drive, *components = absolute(spec, "").split("/")
    last = components[-1]
    if usage is not _EXCLUDED and last == "**":
        return None
    if not re.search(r"[.*?]", last):
        components += ["**", "*"]
    text = re.escape(drive)
    optional = 0
    for component in components:
        if component == "**":
            text += usage.any_depth
            continue
        if usage.prefixes:
            text += "(?:"
            optional += 1
        text += "/" + _component(component, usage)
    return text + ")?" * optional


def _component(component: str, usage: _Usage) -> str:
    head = ""
    rest = component
    if usage.skips_hidden and component[:1] == "*":
        head, rest = f"(?:[^./]{usage.star})?", component[1:]
    elif usage.skips_hidden and component[:1] == "?":
        head, rest = "[^./]", component[1:]
    text = head + "".join(
        usage.star if piece == "*" else "[^/]" if piece == "?" else re.escape(piece)
        for piece in re.split("([*?])", rest)
    )
    return (_NO_PACKAGES if usage.skips_hidden and not _is_plain(component) else "") + text


def _is_plain(component: str) -> bool:
    """Whether TypeScript escapes no character of the name; it excludes package folders only for the other names."""
    return re.fullmatch(r"[\w\s]*", component, re.ASCII) is not None


def _group_of(path: str, groups: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return next((group for group in groups if path.endswith(group)), ())


def _is_shadowed(
    path: str, group: tuple[str, ...], literal: dict[str, str], chosen: dict[str, str], fold: Callable[[str], str]
) -> bool:
    """Whether a file of the same module that is nearer to the source was found before."""
    for extension in group:
        if path.endswith(extension) and not (extension == ".ts" and path.endswith(".d.ts")):
            return False
        other = fold(_with_extension(path, extension))
        if other in literal or other in chosen:
            if extension == ".d.ts" and path.endswith((".js", ".jsx")):
                continue  # a declaration next to JavaScript does not replace it
            return True
    return False


def _drop_shadowed(path: str, group: tuple[str, ...], chosen: dict[str, str], fold: Callable[[str], str]) -> None:
    for extension in reversed(group):
        if path.endswith(extension):
            return
        chosen.pop(fold(_with_extension(path, extension)), None)


def _with_extension(path: str, extension: str) -> str:
    return path.removesuffix(extension_of(path)) + extension
