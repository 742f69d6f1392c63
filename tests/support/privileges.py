"""Running programs without the right of root to read and write everything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from support.programs import in_ci

ROOT = sys.platform != "win32" and os.geteuid() == 0
SETPRIV = shutil.which("setpriv")
AS_A_USER = [SETPRIV, "--bounding-set=-dac_override,-dac_read_search"] if SETPRIV and ROOT else []
needs_a_user = pytest.mark.skipif(ROOT and not AS_A_USER, reason="root without setpriv may do everything")


def with_mount(source: str, target: str, *options: str) -> list[str]:
    """A prefix that runs a program where `source` is mounted on `target`, which only that program sees.

    Skips the test where no namespaces are allowed; in CI on Linux that is an error.
    """
    other = [] if ROOT else ["--user", "--map-root-user"]
    mount = f'{shutil.which("mount")} --bind {" ".join(options)} "$0" "$1" && shift && exec "$@"'
    prefix = [shutil.which("unshare") or "unshare", "--mount", *other, "/bin/sh", "-c", mount, source, target]
    try:
        tried = subprocess.run([*prefix, "/bin/true"], capture_output=True, text=True, timeout=30)
        if tried.returncode == 0:
            return prefix
        reason = f"nothing can be mounted here: {tried.stderr.strip()}"
    except OSError as error:
        reason = f"nothing can be mounted here: {error}"
    if in_ci():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
