"""Paths as TypeScript writes them: absolute, with forward slashes on every system, without `.` and `..`."""

from __future__ import annotations

import os
import posixpath
import re

# The order tells which of two names for one module wins; each group is one module.
TYPESCRIPT_GROUPS = ((".ts", ".tsx", ".d.ts"), (".cts", ".d.cts"), (".mts", ".d.mts"))
ALL_GROUPS = (
    (".ts", ".tsx", ".d.ts", ".js", ".jsx"),
    (".cts", ".d.cts", ".cjs"),
    (".mts", ".d.mts", ".mjs"),
)
DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs")
_PLAIN = frozenset((".ts", ".tsx", ".mts", ".cts", *JAVASCRIPT, ".json"))
_DRIVE = re.compile(r"[A-Za-z]:(?:/|$)")
IN_NODE_MODULES = "/node_modules/"


def slashed(path: str) -> str:
    """A path of this system, as TypeScript writes it."""
    return path.replace("\\", "/") if os.sep == "\\" else path


def native(path: str) -> str:
    """A path of TypeScript's, as this system writes it."""
    return path.replace("/", "\\") if os.sep == "\\" else path


def rooted(path: str) -> bool:
    return path.startswith("/") or _DRIVE.match(path) is not None


def absolute(path: str, base: str) -> str:
    """`path`, which may be relative to `base`; a slash at its end is dropped."""
    whole = path if rooted(path) else f"{base}/{path}"
    if "/." in whole or "//" in whole or whole.endswith("/"):
        whole = posixpath.normpath(whole)
        return whole[1:] if whole.startswith("//") else whole
    return whole


def folder_of(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def name_of(path: str) -> str:
    return path[path.rfind("/") + 1 :]


def is_relative(name: str) -> bool:
    """Whether a module's name leads from the importing file's folder."""
    return name in (".", "..") or name.startswith(("./", "../"))


def within(folder: str, path: str) -> bool:
    """Whether `path` is the folder or lies below it."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def extension_of(path: str) -> str:
    """The extension by which TypeScript tells what a file is; empty for other files."""
    dot = path.rfind(".")
    last = path[dot:]
    if last not in _PLAIN:
        return ""
    declaration = f".d{last}"
    return declaration if declaration in DECLARATIONS and path.endswith(".d", 0, dot) else last
