"""The path of the config of a workspace. Apart from `config` for cheap imports: the launch of a proxy waits for it."""

from __future__ import annotations

import os

from .paths import absolute, upwards

# This file makes its directory a workspace for any server, also without Uno.
CONFIG = os.path.join(".devtools", "host.config.jsonc")


def config_in(folder: str) -> str | None:
    config = os.path.join(folder, CONFIG)
    return config if os.path.isfile(config) else None


def find_config(directory: str) -> str | None:
    """The nearest config, in the directory or above it."""
    return next((config for folder in upwards(absolute(directory)) if (config := config_in(folder))), None)
