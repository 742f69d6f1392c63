"""The paths in `.devtools` that make a folder a workspace. Separate, because the launch of a proxy waits for this."""

from __future__ import annotations

import os
from itertools import islice

from ..system.files import is_foreign
from .paths import absolute, upwards

# A folder that contains this file is a workspace for any server, even without Uno.
CONFIG = os.path.join(".devtools", "host.config.jsonc")
ADDINS_FOLDER = os.path.join(".devtools", "addins")
MOST_MISNAMED = 5  # how many are told of one folder
# Names that are easily written instead, in lower case and without all but letters.
_NEAR_NAMES = {
    **dict.fromkeys(("addin", "addins"), "addins"),
    **dict.fromkeys(
        (f"{host}config{end}" for host in ("host", "hosts") for end in ("json", "jsonc")), "host.config.jsonc"
    ),
}


def config_in(folder: str) -> str | None:
    config = os.path.join(folder, CONFIG)
    return config if os.path.isfile(config) else None


def misnamed_in(folder: str) -> tuple[list[tuple[str, str]], int]:
    """The paths in the folder's `.devtools` with a name that is nearly one of ours, and the right path of each.

    Only the first few, and how many more there are; none in what belongs to another user, as it can in `/tmp`.
    """
    devtools = os.path.join(folder, ".devtools")
    try:
        if is_foreign(os.lstat(devtools)) or is_foreign(os.stat(devtools)):
            return [], 0
        names = sorted(os.listdir(devtools))
    except OSError:
        return [], 0
    near = ((name, _NEAR_NAMES.get("".join(filter(str.isalpha, name.lower())))) for name in names)
    misnamed = (
        (os.path.join(devtools, name), os.path.join(devtools, right))
        for name, right in near
        if right and name != right and not (name.lower() == right and _is_same(devtools, name, right))
    )
    return list(islice(misnamed, MOST_MISNAMED)), sum(1 for _ in misnamed)


def _is_same(folder: str, name: str, other: str) -> bool:
    """Whether both are one file, because the file system ignores case."""
    try:
        return os.path.samefile(os.path.join(folder, name), os.path.join(folder, other))
    except OSError:
        return False


def find_config(directory: str) -> str | None:
    """The path of the nearest config, in the directory or above it; None if there is none."""
    return next((config for folder in upwards(absolute(directory)) if (config := config_in(folder))), None)
