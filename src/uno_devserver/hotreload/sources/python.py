"""The Python files of a package: those in the folders that its `pyproject.toml` means to build backends.

Where it says nothing, the usual layouts count: `src/`, or the package that is named like the project. Where nothing is
built, all that lies there counts but for tests; without a manifest, every Python file below the root.
"""

from __future__ import annotations

from ...system.files import FileProblem, read_bytes
from .pyproject import NOT_THE_CODE, package_places
from .walk import hidden_and_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from .walk import Tree

MANIFEST = "pyproject.toml"
MAX_MANIFEST_BYTES = 4 * 1024 * 1024  # a few KB in real life
ENVIRONMENT_MARK = "pyvenv.cfg"  # lies in every virtual environment
ENDINGS = frozenset({".py", ".cfg"})  # .cfg: for the mark
_NOT_THE_CODE_MODULES = frozenset({"conftest.py", "noxfile.py", "setup.py"})


def find_python(tree: Tree) -> None:
    """Adds the files of a package with a `pyproject.toml`."""
    import tomllib

    manifest = tree.path(MANIFEST)
    tree.deciding.add(manifest)
    document = {}
    try:
        document = tomllib.loads(read_bytes(manifest, MAX_MANIFEST_BYTES).decode("utf-8"))
    except FileNotFoundError:  # just removed: the next look finds another kind of package
        pass
    except FileProblem as problem:
        tree.problems.append(f"{manifest} cannot be read: {problem.reason}. All Python files beside it count.")
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, lists in lists without end
        tree.problems.append(f"{manifest} is not valid: {error}. All Python files beside it count.")
    places = package_places(tree.root, document)
    tree.problems += places.problems
    for place in places.found:
        if place.endswith(".py"):
            tree.add(place)
        else:
            add_python_below(tree, place)
    tree.deciding.update(tree.path(place) for place in places.awaited)
    tree.folders.update(tree.path(place) for place in places.listed)
    if not tree.files:
        tree.walk("", _is_code, _passes_what_is_no_code, deciding=(ENVIRONMENT_MARK,))


def add_python_below(tree: Tree, start: str) -> None:
    """Every Python file below a folder, but for environments and hidden folders."""
    tree.walk(start, lambda path: path.endswith(".py"), python_passes, deciding=(ENVIRONMENT_MARK,))


def python_passes(folder: str, names: Collection[str]) -> Collection[str] | None:
    return None if folder and ENVIRONMENT_MARK in names else hidden_and_foreign(names)


def _is_code(path: str) -> bool:
    return path.endswith(".py") and path not in _NOT_THE_CODE_MODULES


def _passes_what_is_no_code(folder: str, names: Collection[str]) -> Collection[str] | None:
    passed = python_passes(folder, names)
    return passed if passed is None or folder else {*passed, *NOT_THE_CODE}
