"""The way in."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    # A command lives for some milliseconds: looking for cyclic garbage, and taking everything apart at the end, would
    # cost a tenth of them. Whatever lives longer turns the collector on again.
    gc.disable()
    from .cli.main import main as run

    try:
        return run(sys.argv[1:])
    finally:
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
