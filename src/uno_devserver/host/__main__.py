"""Runs `python -m uno_devserver.host`, the command with which launchers start the bundled Host."""

from __future__ import annotations

import sys

# `python -m` puts the current folder, a workspace, on sys.path; a json.py in it must not be imported.
if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]

from ..cli.host import control
from .main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], control))
