"""The JavaScript files of a package without a `tsconfig.json`: all below its root but what others or builds wrote."""

from __future__ import annotations

from .source_tree import hidden_and_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from .source_tree import SourceTree

MANIFEST = "package.json"
EXTENSIONS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts")  # node runs TypeScript too
ENDINGS = frozenset({*EXTENSIONS, ".json"})  # .json: a manifest makes its folder a package
_OUTPUT = frozenset({"dist", "build", "out", "coverage"})


def find_javascript(tree: SourceTree) -> None:
    tree.walk("", lambda path: path.endswith(EXTENSIONS), _passes, deciding=(MANIFEST,))


def _passes(_folder: str, names: Collection[str]) -> Collection[str]:
    """Builds write beside a manifest; a folder `src/build` is code."""
    passed = hidden_and_foreign(names)
    return passed | _OUTPUT if MANIFEST in names else passed
