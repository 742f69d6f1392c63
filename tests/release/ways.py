"""The ways in which people install it, as the documents name them; each leaves the machine with the program to call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from release.building import ROOT, Built
from release.machine import ReleaseMachine, installer_environment
from release.pythons import UV, Python


def by_pip(what: Literal["wheel", "sdist"]) -> Callable[[ReleaseMachine, Built, Python], None]:
    """Into an empty environment; it has not even pip, which comes from outside."""

    def install(machine: ReleaseMachine, built: Built, python: Python) -> None:
        environment = machine.folder / "venv"
        machine.install(python.path, "-m", "venv", "--without-pip", str(environment))
        pip = [sys.executable, "-m", "pip", "--python", str(environment), "install", "--quiet"]
        machine.install(*pip, str(built.wheel if what == "wheel" else built.sdist))
        machine.program = [str(environment / "bin" / "uno-devserver")]

    return install


def by_uv_tool(machine: ReleaseMachine, built: Built, python: Python) -> None:
    machine.install(UV, "tool", "install", "--python", python.path, str(built.wheel))
    machine.program = [str(Path(machine.tool_folders()["UV_TOOL_BIN_DIR"], "uno-devserver"))]


def by_pipx(machine: ReleaseMachine, _built: Built, python: Python) -> None:
    machine.install(sys.executable, "-m", "pipx", "install", "--python", python.path, ".", cwd=ROOT)
    machine.program = [str(Path(machine.tool_folders()["PIPX_BIN_DIR"], "uno-devserver"))]


def by_uvx(machine: ReleaseMachine, built: Built, python: Python) -> None:
    """Nothing is installed: uv has the environment of each run in its cache."""
    _run_by_uv(machine, str(built.wheel), python)


def from_checkout(machine: ReleaseMachine, _built: Built, python: Python) -> None:
    _run_by_uv(machine, str(ROOT), python)


def _run_by_uv(machine: ReleaseMachine, source: str, python: Python) -> None:
    machine.program = [UV, "tool", "run", "--python", python.path, "--from", source, "uno-devserver"]
    # Here it is the program's call that downloads.
    machine.environment = installer_environment() | machine.environment | machine.tool_folders()
