"""The way in."""

from __future__ import annotations

import gc
import sys

# `python -m` puts the current folder first, and that is often a workspace: a json.py in it must not run.
if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]


def main() -> int:
    # A command lives for some milliseconds: looking for cyclic garbage, and taking everything apart at the end, would
    # cost a tenth of them. Whatever lives longer turns the collector on again.
    gc.disable()
    try:
        if sys.platform == "win32":
            from .system.standard_streams import print_utf8

            print_utf8()
        from .cli.main import main as run

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # while the program itself was still being read
        return 130
    finally:
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
