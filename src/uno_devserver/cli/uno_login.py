"""`login`: opens the Uno Settings application, in which the user signs in; with a URL, see `server_login.py`.

With a window, the application keeps running when this command ends. With --headless it uses the terminal, including
its input, and this command returns its exit code.
"""

from __future__ import annotations

import os
import sys

from ..issues import REMEDIES, UserError
from ..system.programs import find_program
from ..system.text import decode_output
from .result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from ..discovery.discover import Discovery
    from .parse import Invocation

GRACE_SECONDS = 3.0  # an application that cannot start, e.g. without a runtime or a display, has ended by then
QUOTED_BYTES = 2000  # how much of a failed application's output is quoted: an exception and some of its stack
HEADLESS = "--headless"
SIGN_IN_OPTIONS = ("client-id", "scope", "port", "no-open", "keyring")  # of `login <url>` alone


def run(invocation: Invocation, grace_seconds: float = GRACE_SECONDS) -> Result:
    from . import server_login

    if invocation.on("list"):
        return server_login.list_sign_ins()
    if any(map(server_login.is_address, invocation.arguments)) or any(map(invocation.options.get, SIGN_IN_OPTIONS)):
        return server_login.sign_in(invocation)
    headless = invocation.on("headless")
    arguments = ((HEADLESS,) if headless else ()) + invocation.arguments + invocation.forwarded + invocation.child
    command = [_dotnet(), _program(invocation), "login", *arguments]
    if headless:
        return _run_in_terminal(command, quiet=invocation.on("json"))
    return _open_window(command, grace_seconds)


def _dotnet() -> str:
    program = find_program("dotnet", os.environ)
    if program is None:
        message = "The Settings application needs .NET, and no 'dotnet' was found in the folders of PATH."
        raise UserError("DotNetNotFound", message, REMEDIES["DotNetNotFound"])
    return program


def _program(invocation: Invocation) -> str:
    from ..discovery.discover import DiscoveryRequest, discover  # imported late: a sign-in to a server needs none of it
    from ..workspace.resolver import ResolutionKind

    request = DiscoveryRequest(invocation.folder(), explicit=invocation.names_folder)
    discovery = discover(request, os.environ)
    if discovery.workspace.kind is ResolutionKind.Ambiguous:  # the sign-in is the same for all solutions
        discovery = discover(request.replace(solution=discovery.workspace.candidates[0]), os.environ)
    if discovery.settings.program is None:
        raise _not_found(discovery)
    return discovery.settings.program


def _not_found(discovery: Discovery) -> UserError:
    """An error that names the first thing that is missing: workspace, SDK, or package."""
    from ..discovery.discover import SETTINGS_PACKAGE

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


def _open_window(command: list[str], grace_seconds: float) -> Result:
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
    return Result({"processId": process.pid, "exitCode": 0}, "The Settings application has ended without an error.")


def _scratch_file() -> IO[bytes]:
    """A file for the application's output: a pipe would break if this command ended before the application."""
    import tempfile

    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        message = f"No temporary file can be made for the output of the Settings application: {error.strerror}."
        step = "Make room in the folder for temporary files, or name another one with TMPDIR."
        raise UserError("SettingsFailed", message, step) from error


def _failure(command: list[str], code: int, output: IO[bytes]) -> tuple[str, str]:
    output.seek(0)
    said = decode_output(output.read(QUOTED_BYTES)).strip()
    printed = f" It printed:\n{said}" if said else " It printed nothing."
    step = f"On a machine without a display, try 'uno-devserver login {HEADLESS}'."
    return f"The Settings application ({command[1]}) ended with exit code {code}.{printed}", step


def _run_in_terminal(command: list[str], *, quiet: bool) -> Result:
    """Run the application to its end and return its exit code; if `quiet`, it does not write to our stdout."""
    import signal
    import subprocess

    # Ctrl+C reaches both processes; the application handles it. SIG_IGN would be inherited by the application.
    ours = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = subprocess.Popen(command, stdout=sys.stderr if quiet else None)
        code = process.wait()
    except OSError as error:
        raise _not_started(command, error) from error
    finally:
        signal.signal(signal.SIGINT, ours)
    code = code if code >= 0 else 128 - code  # ended by a signal: the code that a shell reports
    return Result({"processId": process.pid, "exitCode": code}, None, code)


def _not_started(command: list[str], error: OSError) -> UserError:
    message = f"{command[0]} could not be started: {error.strerror}."
    return UserError("SettingsFailed", message, "Check that 'dotnet --version' works in this folder.")
