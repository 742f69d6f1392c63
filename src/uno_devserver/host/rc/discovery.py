"""The .NET processors that an app points at: found and named, but not loaded, since that takes the .NET Host.

They are read from the metadata of the assemblies. Whatever the path is, the answer is quick and may be empty.
"""

from __future__ import annotations

import os
import re

from ...system.values import Value
from ..assemblies import NotAnAssembly, read_assembly

# Where the assemblies for one version of .NET are, the newest first; else they are in the folder itself.
FRAMEWORK_FOLDERS = ("net10.0", "net9.0")
MAX_ASSEMBLIES = 64  # the Uno packages have three
_PROCESSORS = re.compile(r"Uno\..*\.Processor.*\.dll")

NEEDS_DOTNET = (
    "This processor is a .NET assembly, and the bundled Host runs Python add-ins only. "
    "Start the .NET Host ('uno-devserver start --host dotnet') to use it."
)


class Found(Value):
    """One processor, as an app is told of it."""

    assembly: str
    type: str
    version: str
    error: str | None  # None: it is loaded


def find_processors(base: str | None) -> tuple[list[str], list[Found]]:
    """The assemblies at a path (one of them, or a folder), and the processors they declare."""
    assemblies: list[str] = []
    found: list[Found] = []
    for path in _candidates(base):
        try:
            assembly = read_assembly(path)
        except (NotAnAssembly, FileNotFoundError):
            continue
        assemblies.append(path)
        found += [Found(path, name, assembly.version, NEEDS_DOTNET) for name in assembly.processors]
    return assemblies, found


def _candidates(base: str | None) -> list[str]:
    if not base or not os.path.isabs(base):
        return []
    if os.path.isfile(base):
        return [os.path.abspath(base)]
    folders = [os.path.join(base, name) for name in FRAMEWORK_FOLDERS]
    folder = next(filter(os.path.isdir, folders), base)
    try:
        names = sorted(filter(_PROCESSORS.fullmatch, os.listdir(folder)))
    except (OSError, ValueError):
        return []
    return [os.path.join(folder, name) for name in names[:MAX_ASSEMBLIES]]
