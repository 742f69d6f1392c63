"""A user's machine in a folder: home, NuGet cache, temporary folder, PATH, and nothing of the real one.

The program runs on it as a real process. What it prints is checked at once: with `--json` standard output is one
JSON document and nothing else, and no traceback ever reaches a user.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.dotnet import FakeDotNet

WINDOWS = os.name == "nt"
SLOWNESS = 5 if WINDOWS else 1  # of Wine, by which Windows is tested: it starts a process in 200 ms
COMMAND = str(Path(sys.executable).with_name("uno-devserver.exe" if WINDOWS else "uno-devserver"))
DATA_HOME = "LOCALAPPDATA" if WINDOWS else "XDG_DATA_HOME"
# A run takes 50 ms, and hostile input some seconds at most; the rest is for machines that have other things to do.
RUN_SECONDS = 60 * SLOWNESS  # for a machine that is busy with other things; a command takes some 100 ms


@dataclass(frozen=True)
class Result:
    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def add_ins(self) -> list[str]:
        """The paths that `disco --json` or `disco --addins-only [--json]` gave."""
        if "--addins-only" not in self.argv:
            return [add_in["entryPointDll"] for add_in in self.json["addIns"]]
        if "--json" in self.argv:
            return list(self.json)
        return [path for path in self.stdout.rstrip("\n").split(";") if path]

    @property
    def issue_codes(self) -> list[str]:
        return [issue["code"] for issue in self.json["issues"]]

    def issues(self, code: str) -> list[dict[str, str]]:
        return [issue for issue in self.json["issues"] if issue["code"] == code]

    def issue(self, code: str) -> dict[str, str]:
        """The one issue with this code."""
        found = self.issues(code)
        assert len(found) == 1, f"{len(found)} issues {code} among {self.issue_codes}"
        return found[0]


class Machine:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = self._folder("home")
        self.nuget = self._folder("nuget")
        self.data = self._folder("data")
        self.temp = self._folder("temp")
        self.workspace = self._folder("ws")
        self.tools = self._folder("tools")
        self.dotnet: FakeDotNet | None = None
        self.environment: dict[str, str] = {"NUGET_PACKAGES": str(self.nuget)}
        git = shutil.which("git")
        if git:
            (self.tools / "git").symlink_to(git)

    @property
    def state(self) -> Path:
        """The only folder that the program may write to."""
        return self.data / "Uno Platform" / "uno.devserver"

    def install_dotnet(self, dotnet: FakeDotNet | None = None) -> FakeDotNet:
        self.dotnet = dotnet or FakeDotNet()
        self.dotnet.install(self.root / "dotnet")
        return self.dotnet

    def run(
        self,
        *argv: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = RUN_SECONDS,
        address_space: int | None = None,
        prefix: Sequence[str] = (),
    ) -> Result:
        """Run `uno-devserver <argv>`; `prefix` is a program to run it.

        `address_space` bounds its memory in bytes, where the system can.
        """
        process = subprocess.run(
            [*prefix, sys.executable, "-m", "uno_devserver", *argv],
            cwd=cwd or self.workspace,
            env={**self.variables(), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            preexec_fn=None if WINDOWS or address_space is None else lambda: _limit_memory(address_space),
        )
        result = Result(argv, process.returncode, process.stdout, process.stderr)
        for unexpected in ("Traceback", "went wrong inside uno-devserver"):
            assert unexpected not in result.stdout + result.stderr, result.stdout + result.stderr
        if "--json" in argv and not {"--help", "-h", "--version"} & set(argv):
            assert _is_one_json_document(result.stdout), f"{argv}: {result.stdout!r} {result.stderr!r}"
        return result

    def spawn(
        self, *argv: str, cwd: Path | None = None, stderr: int = subprocess.PIPE, prefix: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        """Begin `uno-devserver <argv>`; the test sees to its end."""
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "uno_devserver", *argv],
            cwd=cwd or self.workspace,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
        )

    def disco(self, *options: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Result:
        return self.run("disco", "--json", *options, cwd=cwd, env=env)

    def variables(self) -> dict[str, str]:
        """The environment that programs have on it."""
        path = [str(self.dotnet.root)] if self.dotnet else []
        return {
            **home_variables(self.home, self.data),
            "TMPDIR": str(self.temp),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join([*path, str(self.tools)]),
            **self.environment,
        }

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir()
        return folder


def home_variables(home: Path, data: Path) -> dict[str, str]:
    """By which programs find the folders of their user; on Windows also what none can do without."""
    if not WINDOWS:
        return {"HOME": str(home), DATA_HOME: str(data)}
    needed = {name: os.environ[name] for name in ("SYSTEMROOT", "PATHEXT", "COMSPEC", "TEMP") if name in os.environ}
    return {**needed, "USERPROFILE": str(home), "APPDATA": str(home / "AppData" / "Roaming"), DATA_HOME: str(data)}


def _limit_memory(size: int) -> None:
    import resource  # POSIX only, as are the tests that use it

    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _is_one_json_document(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
