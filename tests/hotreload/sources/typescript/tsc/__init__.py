"""Real TypeScript compilers, asked for the files of projects."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from support.npm import NODE, installed

HERE = Path(__file__).parent
OLDER = (5, 6)  # written in JavaScript, with other defaults
TSC = "tsc.exe" if os.name == "nt" else "tsc"
LIST_SECONDS = 90


def tsc_files(*configs: Path) -> set[str]:
    """What `tsc --listFilesOnly` prints for configurations, without its library and what is in node_modules."""
    # It is a program of its own; the script around it only takes time.
    (program,) = (installed(HERE) / "node_modules" / "@typescript").glob(f"typescript-*/lib/{TSC}")
    return {file for config in configs for file in _files(_run(program, "--listFilesOnly", "-p", config), config)}


def older_tsc_files(configs: Sequence[Path], version: int) -> list[set[str]]:
    """The same of an older compiler, for each configuration."""
    module = installed(HERE) / "node_modules" / f"typescript-{version}" / "lib" / "typescript.js"
    output = _run(NODE, HERE / "list_many.cjs", module, *configs)
    parts = output.split("# ")[1:]
    assert [part.splitlines()[0] for part in parts] == list(map(str, configs))
    return [_files(part.split("\n", 1)[1], config) for part, config in zip(parts, configs, strict=True)]


def declare_version(root: Path, version: int) -> None:
    """Let the project have that compiler, as far as its package.json tells."""
    package = root / "node_modules" / "typescript" / "package.json"
    package.parent.mkdir(parents=True, exist_ok=True)
    package.write_text(f'{{"name": "typescript", "version": "{version}.0.0"}}')


def _run(*command: str | Path) -> str:
    ran = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIST_SECONDS,
        check=False,
    )
    assert not ran.stderr, ran.stderr
    return ran.stdout


def _files(output: str, config: Path) -> set[str]:
    # Errors of the configuration come in between: they are indented, or have a place and a colon.
    files = {line for line in output.splitlines() if line.startswith("/") and ": error TS" not in line}
    assert files or "error TS" in output or '"files": []' in config.read_text(), (
        f"{config}: tsc listed nothing: {output}"
    )
    return {file for file in files if "/node_modules/" not in file}
