"""The source files of a Go module, and the modules of the same repository that it uses.

The files are those that `go build` reads for any package of the module: code, what it embeds, `go.mod` and `go.sum`.
Modules are used by a `replace` with a path, or by a `go.work` that names them.
"""

from __future__ import annotations

import os
import re

from ...system.files import FileProblem, read_bytes
from ...workspace.config import can_be_given
from .globs import Globs
from .source_tree import hidden_and_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ...workspace.repository import Repository
    from .source_tree import SourceTree

MANIFEST = "go.mod"
WORKSPACE = "go.work"
MAX_BYTES = 16 * 1024 * 1024  # of a file that is searched; code has a few KB
_ENDINGS = (".go", ".s", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".m", ".syso")  # with those of cgo
_EMBED = re.compile(rb"^//go:embed[ \t]+(.+)$", re.MULTILINE)
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|`([^`]*)`|(\S+)')


def find_go(tree: SourceTree) -> frozenset[str] | None:
    """Add the files of the module in the root; return the endings of all names that may be sources, None for any."""
    tree.add(MANIFEST)
    tree.add("go.sum")
    tree.walk("", _is_code, _skipped, deciding=(MANIFEST,))
    embedded = Globs(_embedded(tree), "go:embed")
    tree.add_matching(embedded)
    own = frozenset({*_ENDINGS, ".mod", ".sum"})
    more = embedded.endings()
    return None if more is None else own | more


def used_modules(folder: str, repository: Repository, tree: SourceTree) -> list[str]:
    """The folders of the modules that the module in `folder` uses; `tree` gets the paths that decide about them."""
    module = _read(os.path.join(folder, MANIFEST), tree)
    places = list(_replaced(module, folder))
    for above in repository.upwards(folder):
        workspace = _read(os.path.join(above, WORKSPACE), tree)
        if workspace:
            required = {words[1] for words in module if words[0] == "require" and len(words) > 1}
            places += _replaced(workspace, above)
            for place in (os.path.join(above, words[1]) for words in workspace if words[0] == "use" and words[1:]):
                names = (words[1] for words in _read(os.path.join(place, MANIFEST)) if words[0] == "module")
                places += [place for name in names if name in required]
            break
    return repository.packages(folder, places)


def _is_code(path: str) -> bool:
    name = path.rpartition("/")[2]
    return path.endswith(_ENDINGS) and not path.endswith("_test.go") and name[0] not in "._"


def _skipped(folder: str, names: Collection[str]) -> Collection[str] | None:
    if folder and MANIFEST in names:  # another module
        return None
    return hidden_and_foreign(names) | {"testdata", "vendor"} | {name for name in names if name[0] == "_"}


def _embedded(tree: SourceTree) -> Iterator[str]:
    """The patterns of all `//go:embed` lines, from the root."""
    for name, path in tree.files.items():
        if not name.endswith(".go"):
            continue
        try:
            found = _EMBED.findall(read_bytes(path, MAX_BYTES))
        except (FileNotFoundError, FileProblem):
            continue
        folder = name.rpartition("/")[0]
        for line in found:
            for word in _words(line.decode("utf-8", "replace")):
                pattern = word.removeprefix("all:")
                if can_be_given(pattern):
                    yield f"{folder}/{pattern}" if folder else pattern


def _replaced(statements: list[list[str]], folder: str) -> Iterator[str]:
    for words in statements:
        target = words[words.index("=>") + 1 :] if words[0] == "replace" and "=>" in words else []
        if target and (os.path.isabs(target[0]) or target[0].startswith(("./", "../"))):
            yield os.path.join(folder, target[0])


def _read(path: str, tree: SourceTree | None = None) -> list[list[str]]:
    """The statements of a go.mod or go.work, each with its verb, also those inside of brackets."""
    if tree is not None:
        tree.deciding.add(path)
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, FileProblem, ValueError):
        return []
    statements, verb = [], ""
    for line in text.splitlines():
        words = _words(line.partition("//")[0])
        if words == [")"]:
            verb = ""
        elif len(words) == 2 and words[1] == "(":
            verb = words[0]
        elif words:
            statements.append([verb, *words] if verb else words)
    return statements


def _words(line: str) -> list[str]:
    return ["".join(groups) for groups in _WORD.findall(line)]
