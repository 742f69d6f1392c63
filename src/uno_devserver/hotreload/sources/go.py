"""The source files of a Go module, and the modules of the same repository that it uses.

The files are those that `go build` reads for any package of the module: code, what it embeds, `go.mod` and `go.sum`.
Modules are used by a `replace` with a path, or by a `go.work` that names them.
"""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from mmap import ACCESS_READ, mmap

from ...system.files import FileProblem, open_regular
from ...workspace.config import can_be_given
from ...workspace.repository import BudgetSpent, ReadBudget, is_inside, limited
from .globs import Globs
from .source_tree import SourceTree, hidden_and_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ...workspace.repository import Repository

MANIFEST = "go.mod"
WORKSPACE = "go.work"
MAX_BYTES = 16 * 1024 * 1024  # of a file that is searched; code has a few KB
MAX_MANIFEST_BYTES = 1024 * 1024  # of a go.mod or go.work; those of large projects have 20 KB
_ENDINGS = (".go", ".s", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".m", ".syso")  # with those of cgo
_EMBED = re.compile(rb"^//go:embed[ \t]+(.+)$", re.MULTILINE)
_MAIN = re.compile(rb"^package main\b", re.MULTILINE)
_IGNORED = re.compile(rb"^//go:build ignore\b", re.MULTILINE)
_INFO_MARK = b"\xff Go buildinf:"
_INFO_ALIGNMENT = 16
_MAX_MARKS = 100  # a program that reads build infos has the mark itself, at other places
_MAX_PROGRAM_BYTES = 512 * 1024 * 1024  # that are searched; a large program has 200 MB
_MAX_LENGTH_BYTES = 5  # of the length of a text
_SYSTEMS = {"linux": "linux", "darwin": "darwin", "win32": "windows"}  # GOOS by the name that Python has
_USUAL_OPTIONS = {"-buildmode=exe", "-compiler=gc"}
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|`([^`]*)`|(\S+)')


def find_go(tree: SourceTree) -> frozenset[str] | None:
    """Add the files of the module in the root; return the endings of all names that may be sources, None for any."""
    tree.add(MANIFEST)
    tree.add("go.sum")
    tree.walk("", _is_code, _skipped, deciding=(MANIFEST,))
    embedded = Globs(_embedded(tree), "go:embed")
    tree.problems += embedded.problems
    tree.add_matching(embedded, (os.path.realpath(tree.root),))
    own = frozenset({*_ENDINGS, ".mod", ".sum"})
    more = embedded.endings()
    return None if more is None else own | more


def used_modules(folder: str, repository: Repository, tree: SourceTree) -> list[str]:
    """The folders of the modules that the module in `folder` uses; `tree` gets the paths that decide about them."""
    manifest = os.path.join(folder, MANIFEST)
    tree.deciding.add(manifest)
    module = _read(manifest, tree.budget, tree.problems)
    places = list(limited(_replaced(module, folder), manifest, tree.problems))
    for above in repository.upwards(folder):
        path = os.path.join(above, WORKSPACE)
        tree.deciding.add(path)
        if os.path.isfile(path):
            required = {words[1] for words in module if words[0] == "require" and len(words) > 1}
            replaced, members = tree.budget.once(path, partial(_read_workspace, path, tree))
            places += [*replaced, *(place for name, place in members.items() if name in required)]
            break
    return repository.packages(folder, places)


def _read_workspace(path: str, tree: SourceTree) -> tuple[list[str], dict[str, str]]:
    """The places by which a go.work replaces modules, and those of the modules that it names, by name."""
    folder = os.path.dirname(path)
    statements = _read(path, tree.budget, tree.problems)
    named = (words[1] for words in statements if words[0] == "use" and words[1:])
    places = dict.fromkeys(os.path.normpath(os.path.join(folder, place)) for place in named)
    members = {_module_name(place, tree.budget): place for place in limited(places, path, tree.problems)}
    return list(limited(_replaced(statements, folder), path, tree.problems)), members


def _module_name(folder: str, budget: ReadBudget) -> str:
    statements = _read(os.path.join(folder, MANIFEST), budget, [])
    return next((words[1] for words in statements if words[0] == "module" and words[1:]), "")


def main_package(program: str, root: str) -> str | None:
    """The package of the module in `root` that a program inside it is compiled from; None if that is not certain.

    A program names its module, its package and the options of its build. If it was compiled from single files, in
    another module, for another system or with unusual options, no build of ours would write the same program. For a
    program that does not exist, it is the only main package of the module.
    """
    if os.path.islink(program) or not is_inside(os.path.realpath(program), os.path.realpath(root)):
        return None
    described = _build_info(program)
    if described is None and (os.path.exists(program) or os.path.splitext(program)[1] not in ("", ".exe")):
        return None  # it is not a program of Go
    budget = ReadBudget()
    try:
        return _only_main(root, budget) if described is None else _described_package(described, root, budget)
    except BudgetSpent:
        return None


def _described_package(described: str, root: str, budget: ReadBudget) -> str | None:
    lines = [[*line.split("\t"), "", ""] for line in described.splitlines()]
    options = {words[1] for words in lines if words[0] == "build" and words[1].startswith("-")}
    system = next((words[1] for words in lines if words[0] == "build" and words[1].startswith("GOOS=")), "")
    if options - _USUAL_OPTIONS or system.removeprefix("GOOS=") != _SYSTEMS.get(sys.platform):
        return None
    path, module = (next((words[1] for words in lines if words[0] == key), "") for key in ("path", "mod"))
    below = path[len(module) :]
    is_ours = module and module == _module_name(root, budget) and path.startswith(module) and below[:1] in ("", "/")
    return f".{below}" if is_ours and os.path.isdir(root + below) else None


def _only_main(root: str, budget: ReadBudget) -> str | None:
    tree = SourceTree(root, Globs((), "hotReload.exclude"), budget)
    tree.walk("", lambda name: name.endswith(".go") and _is_code(name), _skipped)
    mains = {name.rpartition("/")[0] for name, file in tree.files.items() if _is_main(file, budget)}
    return f"./{mains.pop()}".rstrip("/") if len(mains) == 1 else None


def run_package(line: Sequence[str], directory: str, root: str) -> str:
    """The package or file inside `root` that `go run` is given, from there; empty if there is not exactly one.

    With options it is empty, too: a build without them may fail.
    """
    words = [os.path.basename(line[0]).removesuffix(".exe"), *line[1:4]] if line else []
    if words[:2] != ["go", "run"] or not words[2:] or (words[3:] and words[3].endswith(".go")):
        return ""
    is_path = words[2].startswith(".") or os.path.isabs(words[2]) or words[2].endswith(".go")
    path, root = os.path.realpath(os.path.join(directory, words[2])), os.path.realpath(root)
    if not is_path or words[2].endswith("...") or not (path == root or is_inside(path, root)):
        return ""
    below = os.path.relpath(path, root).replace(os.sep, "/")
    return "." if below == "." else f"./{below}"


def _build_info(program: str) -> str | None:
    """What `go version -m` prints of a program that Go 1.18 or newer has compiled; None if it is another file."""
    try:
        with open_regular(program) as stream:
            size = min(os.fstat(stream.fileno()).st_size, _MAX_PROGRAM_BYTES)
            with mmap(stream.fileno(), size, access=ACCESS_READ) as content:
                at = content.find(_INFO_MARK)
                for _ in range(_MAX_MARKS):
                    if at < 0 or at % _INFO_ALIGNMENT == 0:
                        break
                    at = content.find(_INFO_MARK, at + 1)
                if at < 0 or at % _INFO_ALIGNMENT or not content[at + 15] & 2:
                    return None
                at += 32  # the two strings follow, each after its length: Go's version, and what is known of the build
                for _ in range(2):
                    length = 0
                    for number in range(_MAX_LENGTH_BYTES):
                        length |= (content[at] & 0x7F) << 7 * number
                        at += 1
                        if content[at - 1] < 0x80:
                            break
                    text, at = content[at : at + min(length, MAX_MANIFEST_BYTES)], at + length
                return text[16:-16].decode("utf-8", "replace")  # between two marks
    except (OSError, FileProblem, ValueError, IndexError):
        return None


def _is_main(path: str, budget: ReadBudget) -> bool:
    try:
        content = budget.read(path, MAX_BYTES)
    except (FileNotFoundError, FileProblem):
        return False
    return _MAIN.search(content) is not None and _IGNORED.search(content) is None


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
            found = _EMBED.findall(tree.budget.read(path, MAX_BYTES))
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


def _read(path: str, budget: ReadBudget, problems: list[str]) -> list[list[str]]:
    """The statements of a go.mod or go.work, each with its verb, also those inside of brackets."""
    try:
        text = budget.read(path, MAX_MANIFEST_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, ValueError):
        return []
    except FileProblem as problem:
        problems.append(f"{problem}, so the modules that it names are not watched.")
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
