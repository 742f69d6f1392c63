"""The paths in `.devtools` that make a folder a workspace. Separate, because the launch of a proxy waits for this."""

from __future__ import annotations

import os

from .paths import absolute, upwards

# A folder that contains this file is a workspace for any server, even without Uno.
CONFIG = os.path.join(".devtools", "host.config.jsonc")
ADDINS_FOLDER = os.path.join(".devtools", "addins")


def config_in(folder: str) -> str | None:
    config = os.path.join(folder, CONFIG)
    return config if os.path.isfile(config) else None


def find_config(directory: str) -> str | None:
    """The path of the nearest config, in the directory or above it; None if there is none."""
    return next((config for folder in upwards(absolute(directory)) if (config := config_in(folder))), None)
