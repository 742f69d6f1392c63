"""Which file stands behind a place? With the extension that it has in the source, with one added, or as a folder.

The order of the attempts is TypeScript's, because the first file that is there wins.
"""

from __future__ import annotations

from .ts_options import Resolution
from .ts_paths import DECLARATIONS, absolute, extension_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ts_disk import Disk
    from .ts_options import Options

# What may be looked for; numbers, because sets of them are made for every import.
SOURCE, JS, DECLARATION, JSON = 1, 2, 4, 8
TYPED = SOURCE | DECLARATION
KIND_OF = {
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts"), SOURCE),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), JS),
    **dict.fromkeys(DECLARATIONS, DECLARATION),
    ".json": JSON,
}
_INSTEAD = {
    # By the extension that is written: what may stand there, in the order of the attempts.
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


class Lookup:
    """A search for files of some kinds. `strict` is Node's way with ES modules: names are complete."""

    def __init__(self, options: Options, disk: Disk, kinds: int, *, strict: bool) -> None:
        self.kinds = kinds
        self.strict = strict
        self._options = options
        self._disk = disk

    def like(self, kinds: int, *, strict: bool | None = None) -> Lookup:
        return Lookup(self._options, self._disk, kinds, strict=self.strict if strict is None else strict)

    def place(self, place: str, *, is_folder: bool = False) -> str | None:
        """A file, or a folder with an index or a `package.json` that names one."""
        found = None if is_folder else self.file(place)
        folders = not self.strict and self._options.resolution is not Resolution.CLASSIC
        return self.folder(place) if found is None and folders and self._disk.is_folder(place) else found

    def file(self, place: str, *, lists_folder: bool = True) -> str | None:
        """`lists_folder` says that the folder is worth reading; else only the names themselves are asked for."""
        found = self._replaced(place, lists_folder)
        return self._extended(place, "", lists_folder) if found is None and not self.strict else found

    def folder(self, place: str) -> str | None:
        """By the folder's `package.json`, else its index."""
        package = self._disk.package(place) or {}
        entry = self._entry(package)
        found = self._by_entry(absolute(entry, place), package) if entry is not None else None
        return self.file(f"{place}/index") if found is None and not self.strict else found

    def named(self, place: str) -> str | None:
        """A file that a `package.json` names: sources exactly as written, outputs by what they are made from."""
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
