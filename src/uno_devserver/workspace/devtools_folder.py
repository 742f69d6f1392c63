"""The paths in `.devtools` that make a folder a workspace. Separate, because the launch of a proxy waits for this."""

from __future__ import annotations

import os

from .paths import absolute, upwards

# A folder that contains this file is a workspace for any server, even without Uno.
CONFIG = os.path.join(".devtools", "host.config.jsonc")
ADDINS_FOLDER = os.path.join(".devtools", "addins")
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


def misnamed_in(folder: str) -> list[tuple[str, str]]:
    """The paths in the folder's `.devtools` with a name that is nearly one of ours, and the right path of each."""
    devtools = os.path.join(folder, ".devtools")
    try:
        names = sorted(os.listdir(devtools))
    except OSError:
        return []
    near = ((name, _NEAR_NAMES.get("".join(filter(str.isalpha, name.lower())))) for name in names)
    found = [(os.path.join(devtools, name), os.path.join(devtools, right)) for name, right in near if right]
    return [(path, right) for path, right in found if path != right and not _is_same(path, right)]


def _is_same(path: str, other: str) -> bool:
    """Whether both are one file, because the file system ignores case."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def find_config(directory: str) -> str | None:
    """The path of the nearest config, in the directory or above it; None if there is none."""
    return next((config for folder in upwards(absolute(directory)) if (config := config_in(folder))), None)
