"""`login`: open the Uno Settings application, in which one signs in.

With a window it goes on by itself when this command ends. With --headless it has the terminal, input included, until it
ends, and its exit code is this command's.
"""

from __future__ import annotations

import os
import sys

from ..discovery.discover import SETTINGS_PACKAGE, DiscoveryRequest, discover
from ..issues import REMEDIES, UserError
from ..system.programs import find_program
from ..workspace.resolver import ResolutionKind
from .parse import absolute
from .result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from ..discovery.discover import Discovery
    from .parse import Invocation

GRACE_SECONDS = 3.0  # what cannot start, for want of a runtime or a display, has ended by then
QUOTED_BYTES = 2000  # of the application's output when it failed: an exception and the start of its stack
HEADLESS = "--headless"


def run(invocation: Invocation, grace_seconds: float = GRACE_SECONDS) -> Result:
    headless = invocation.on("headless")
    arguments = ((HEADLESS,) if headless else ()) + invocation.arguments + invocation.forwarded + invocation.child
    command = [_dotnet(), _program(invocation), "login", *arguments]
    if headless:
        return _with_the_terminal(command, quiet=invocation.on("json"))
    return _with_a_window(command, grace_seconds)


def _dotnet() -> str:
    program = find_program("dotnet", os.environ)
    if program is None:
        message = "The Settings application needs .NET, and no 'dotnet' was found in the folders of PATH."
        raise UserError("DotNetNotFound", message, REMEDIES["DotNetNotFound"])
    return program


def _program(invocation: Invocation) -> str:
    named = invocation.value("solution-dir")
    request = DiscoveryRequest(absolute(named or "."), explicit=named is not None)
    discovery = discover(request, os.environ)
    if discovery.workspace.kind is ResolutionKind.Ambiguous:  # one signs in for all solutions: any of them will do
        discovery = discover(request.replace(solution=discovery.workspace.candidates[0]), os.environ)
    if discovery.settings.program is None:
        raise _not_there(discovery)
    return discovery.settings.program


def _not_there(discovery: Discovery) -> UserError:
    """Why there is no Settings application: the first thing that is missing on the way to it."""
    settings = discovery.settings
    causes = discovery.sdk.issues if discovery.workspace.resolved else discovery.workspace.issues
    if causes:
        message = f"The Settings application was not found. {causes[0].message}"
        return UserError("SettingsNotFound", message, causes[0].remediation)
    if settings.version is None:
        message = f"This Uno SDK has no Settings application: its packages.json does not name {SETTINGS_PACKAGE}."
        return UserError("SettingsNotFound", message, "Choose a newer Uno.Sdk version in global.json.")
    where = f"incomplete: {settings.folder}" if settings.folder else "not restored"
    message = f"The package of the Settings application, {SETTINGS_PACKAGE} {settings.version}, is {where}."
    code = "AddInBinaryNotFound" if settings.folder else "AddInPackageNotCached"
    return UserError("SettingsNotFound", message, REMEDIES[code])


def _with_a_window(command: list[str], grace_seconds: float) -> Result:
    import subprocess

    with _scratch_file() as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            raise _not_started(command, error) from error
        try:
            code = process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            data: dict[str, object] = {"processId": process.pid, "exitCode": None}
            return Result(data, f"The Settings application is open (process {process.pid}). Sign in there.")
        if code:
            raise UserError("SettingsFailed", *_failure(command, code, output))
    return Result({"processId": process.pid, "exitCode": 0}, "The Settings application has done its work and ended.")


def _scratch_file() -> IO[bytes]:
    """For the application's output. No pipe: it may write long after we have gone."""
    import tempfile

    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        message = f"The output of the Settings application has no place to go: {error.strerror}."
        step = "Make room in the folder for temporary files, or name another one with TMPDIR."
        raise UserError("SettingsFailed", message, step) from error


def _failure(command: list[str], code: int, output: IO[bytes]) -> tuple[str, str]:
    output.seek(0)
    said = output.read(QUOTED_BYTES).decode("utf-8", "replace").strip()
    printed = f" It printed:\n{said}" if said else " It printed nothing."
    step = f"On a machine without a display, try 'uno-devserver login {HEADLESS}'."
    return f"The Settings application ({command[1]}) ended with exit code {code}.{printed}", step


def _with_the_terminal(command: list[str], *, quiet: bool) -> Result:
    """With --json, standard output is for our result alone."""
    import signal
    import subprocess

    # Ctrl+C reaches both, and it is the application's to decide. Not ignored, for the application would inherit that.
    ours = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = subprocess.Popen(command, stdout=sys.stderr if quiet else None)
        code = process.wait()
    except OSError as error:
        raise _not_started(command, error) from error
    finally:
        signal.signal(signal.SIGINT, ours)
    code = code if code >= 0 else 128 - code  # ended by a signal: what a shell would say
    return Result({"processId": process.pid, "exitCode": code}, None, code)


def _not_started(command: list[str], error: OSError) -> UserError:
    message = f"{command[0]} could not be started: {error.strerror}."
    return UserError("SettingsFailed", message, "Check that 'dotnet --version' works in this folder.")
