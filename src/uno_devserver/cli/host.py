"""`host`: runs the bundled Host in this process; `control` runs the command that its --command flag names."""

from __future__ import annotations

import os

from .result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.flags import HostFlags
    from .parse import Invocation


def run(invocation: Invocation) -> Result:
    from ..host.main import main

    # The Host writes to stdout itself.
    return Result(None, None, main(invocation.child, control))


# These flags choose the command and its folder; the others are passed on to `start`.
_OURS = ("command", "workingdir")


def control(configuration: HostFlags) -> int:
    """Run the command that --command names; returns its exit code."""
    from .main import main

    return main(command_line(configuration))


def command_line(configuration: HostFlags) -> list[str]:
    assert configuration.verb
    argv = [configuration.verb]
    folder = configuration.workspace
    if configuration.verb in ("start", "stop") and folder:
        argv += ["--solution-dir", folder]
    if configuration.verb != "start":
        return argv
    for key, value in configuration.given.items():
        if key == "addins":
            argv += ["--addins", value.strip() or ";"]
        elif key == "force-msbuild-discovery":
            argv += ["--force-msbuild-discovery"] if configuration.force_msbuild else []
        elif key not in _OURS and value.strip():
            argv += [f"--{key}", os.path.abspath(value.strip()) if key == "solution" else value]
    return argv
