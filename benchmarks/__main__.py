"""Everything that is measured, one after the other: `python -m benchmarks [--save]`.

Each part runs in a process of its own, so that none warms another's caches. With --save the figures are put into the
documents; then all tests are run, too, and every bar gets its line in docs/proof.md. Exit code 1: a part got a wrong
answer, or a test failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

PARTS = (
    ("discovery",),
    ("host",),
    ("proxy",),
    ("proxy", "--inspector"),
    ("relay",),
    ("servers",),
    ("hotreload",),
    ("reloads",),
    ("registration",),
    ("peers",),
    ("sign_in",),
    ("scale",),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    options = parser.parse_args()
    saving = ["--save"] if options.save else []
    failed = []
    for module, *arguments in (*PARTS, ("bars",)) if options.save else PARTS:
        name = " ".join([module, *arguments])
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *arguments, *saving], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
