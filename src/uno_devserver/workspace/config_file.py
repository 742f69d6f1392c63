"""Where the config of a workspace lies. Kept apart because it is cheap to import: a proxy's launch waits for it."""

from __future__ import annotations

import os

from .paths import absolute, upwards

# This file makes its directory a workspace for any server, also one that is not about Uno.
CONFIG = os.path.join(".devtools", "host.config.jsonc")


def config_in(folder: str) -> str | None:
    config = os.path.join(folder, CONFIG)
    return config if os.path.isfile(config) else None


def find_config(directory: str) -> str | None:
    """The nearest config, in the directory or above it."""
    return next((config for folder in upwards(absolute(directory)) if (config := config_in(folder))), None)
