"""The way in."""

from __future__ import annotations

import sys


def main() -> int:
    from .cli.main import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
