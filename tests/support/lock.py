"""The packages that `make` installs, with their hashes: `python tests/support/lock.py` (`make lock`) renews the list.

`requirements/` has a file for each purpose, in pip's format: what the program needs to run, what builds it, what its
tests need, and what the long runs and the checks of a release need besides. A package stands in the first file that
needs it. The versions hold for every Python and system that we support. No file names an index: packages come from
whichever the user's pip asks, and only if they have these hashes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "pyproject.toml"
FOLDER = ROOT / "requirements"
HEADER = "# Written by `make lock`: the versions and hashes of all files that may be installed.\n"
# By file: the files that it builds on.
PARTS = {"run": (), "build": (), "dev": ("run", "build"), "proof": ("dev",)}
OLDEST = "3.11"  # Python
SECONDS = 300  # it takes ten
UV = str(Path(sys.executable).with_name("uv"))  # of the extra `dev`
COMPILE = [UV, "pip", "compile", "--quiet", "--universal", "--python-version", OLDEST, "--only-binary", ":all:"]
COMPILE += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-strip-extras", "--no-config"]
# Where nobody makes wheels any more, the last version that has some.
LIMITS = ["cryptography<49; sys_platform == 'darwin' and platform_machine == 'x86_64'"]
_PIN = re.compile(r"^([a-z0-9][a-z0-9-]*)(?:\[.*?\])?==", re.MULTILINE)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="uno-lock-") as folder:
        build = Path(folder) / "build.in"
        build.write_text("\n".join(build_requirements()), "utf-8")
        limits = Path(folder) / "limits.in"
        limits.write_text("\n".join(LIMITS), "utf-8")
        everything = _compiled("--generate-hashes", "--all-extras", "-c", str(limits), str(PROJECT), str(build))
        whole = Path(folder) / "all.txt"
        whole.write_text(everything, "utf-8")
        inputs = {
            "run": [str(PROJECT)],
            "build": [str(build)],
            "dev": ["--extra", "dev", str(PROJECT)],
            "proof": ["--extra", "dev", "--extra", "proof", str(PROJECT)],
        }
        needed = {part: names(_compiled("-c", str(whole), *inputs[part])) for part in PARTS}
    FOLDER.mkdir(exist_ok=True)
    written: set[str] = set()
    for part, before in PARTS.items():
        own = "".join(text for name, text in _pins(everything) if name in needed[part] - written)
        includes = "".join(f"-r {one}.txt\n" for one in before)
        (FOLDER / f"{part}.txt").write_text(HEADER + includes + own, "utf-8")
        written |= needed[part]
    left = names(everything) - written
    if left:
        print(f"no file of {FOLDER} has {', '.join(sorted(left))}: which one installs them?", file=sys.stderr)
    return 1 if left else 0


def build_requirements() -> Sequence[str]:
    required: list[str] = tomllib.loads(PROJECT.read_text("utf-8"))["build-system"]["requires"]
    return required


def names(lock: str) -> set[str]:
    return set(_PIN.findall(lock))


def _pins(lock: str) -> Iterator[tuple[str, str]]:
    """Each package of a lock, with its lines."""
    starts = [*(found.start() for found in _PIN.finditer(lock)), len(lock)]
    for start, end in pairwise(starts):
        text = lock[start:end]
        yield text.partition("==")[0].partition("[")[0], text


def _compiled(*arguments: str) -> str:
    ran = subprocess.run([*COMPILE, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    if ran.returncode:
        raise SystemExit(f"uv could not choose versions: {ran.stderr}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
