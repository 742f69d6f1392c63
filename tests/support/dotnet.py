"""A stand-in for the dotnet command, in a folder that looks like an installation.

It answers `--version`, `--list-sdks`, `--list-runtimes`, `build` and `msbuild -getItem`, runs a Host, and remembers how
it was called.
As recorded from the real one: a `global.json` with a trailing comma ends `--version` with exit code 1, an SDK that is
not installed with 155 and the list of SDKs on standard output; dump files are UTF-16 with one byte order mark.
"""

from __future__ import annotations

import ensurepip
import io
import json
import os
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SCRIPT = r"""#!{python} -IS
import json, os, re, sys

root = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(root, "answers.json"), encoding="utf-8") as stream:
    answers = json.load(stream)
argv = sys.argv[1:]
with open(os.path.join(root, "calls.jsonl"), "a", encoding="utf-8") as stream:
    stream.write(json.dumps({{"argv": argv, "cwd": os.getcwd()}}) + "\n")


def list_sdks():
    for version in answers["sdks"]:
        print(f"{{version}} [{{root}}/sdk]")


def nearest_global_json():
    folder = os.getcwd()
    while not os.path.isfile(os.path.join(folder, "global.json")):
        folder, before = os.path.dirname(folder), folder
        if folder == before:
            return {{}}
    with open(os.path.join(folder, "global.json"), "rb") as stream:
        data = stream.read()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return {{}}  # UTF-16 is passed over
    return json.loads(re.sub(r"//[^\n]*|/\*.*?\*/", "", data.decode("utf-8-sig"), flags=re.DOTALL))


def version():
    try:
        wanted = nearest_global_json().get("sdk", {{}}).get("version")
    except ValueError:
        print("Unhandled exception. System.TypeInitializationException", file=sys.stderr)
        return 1
    if wanted and wanted not in answers["sdks"]:
        list_sdks()
        return 155
    if argv == ["--version"]:
        print(wanted or answers["sdks"][-1])
    return 0


def dump(option, lines):
    for argument in argv:
        if argument.startswith("-p:" + option + "="):
            with open(argument.split("=", 1)[1], "ab") as stream:
                if not stream.tell():
                    stream.write(b"\xff\xfe")
                stream.write("".join(line + "\n" for line in lines).encode("utf-16-le"))


def evaluate():
    if version() == 155:
        wanted = nearest_global_json()["sdk"]["version"]
        print("The command could not be loaded, possibly because:", file=sys.stderr)
        print(f"Install the [{{wanted}}] .NET SDK or update [global.json] to match an installed SDK.", file=sys.stderr)
        return 155
    options = dict(argument.partition("=")[::2] for argument in argv[2:])
    items = None if answers["evaluation"] is None else answers["evaluation"].get(argv[1])
    if answers["evaluation"] is None:
        print("MSBUILD : error MSB1001: Unknown switch.\nSwitch: -getItem:UnoRemoteControlAddIns")
        return 1
    if items is None:
        print(argv[1] + " : error MSB4025: The project file could not be loaded.", file=sys.stderr)
        return 1
    framework = options.get("-p:TargetFramework", "")
    found = [{{"Identity": path.replace("/tools/", "/buildTransitive/../tools/"), "FullPath": path}}
             for path in items.get(framework, [])]
    several = "" if framework else ";".join(name for name in items if name) if "" not in items else ""
    print(json.dumps({{"Properties": {{"TargetFrameworks": several}}, "Items": {{"UnoRemoteControlAddIns": found}}}}))
    return 0


def build():
    answer = answers["build"]
    print(answer["stdout"], end="")
    print(answer["stderr"], end="", file=sys.stderr)
    framework = argv[argv.index("--framework") + 1] if "--framework" in argv else ""
    dump("UnoDumpTargetFrameworksTargetFile", answer["target_frameworks"])
    dump("UnoDumpRemoteControlAddInsTargetFile", answer["add_ins"].get(framework, []))
    return answer["exit_code"]


if argv == ["--list-sdks"]:
    list_sdks()
elif argv == ["--list-runtimes"]:
    for version in answers["runtimes"]:
        print(f"Microsoft.NETCore.App {{version}} [{{root}}/shared/Microsoft.NETCore.App]")
elif argv == ["--version"]:
    sys.exit(version())
elif argv[:1] == ["build"]:
    sys.exit(build())
elif argv[:1] == ["msbuild"]:
    sys.exit(evaluate())
elif argv and argv[0].endswith(".dll") and os.path.exists(os.path.join(root, "host.py")):
    host = [os.path.join(root, "host.py"), *argv]  # see support.hosts
    if os.name == "nt":  # where another process would take the place of this one
        import runpy
        sys.argv = host
        runpy.run_path(host[0], run_name="__main__")
    else:
        os.execv(sys.executable, [sys.executable, "-IS", *host])
else:
    sys.exit("this stand-in does not know: " + " ".join(argv))
"""


@dataclass(frozen=True)
class Build:
    """What `dotnet build` does; `target_frameworks` and `add_ins` are the lines it dumps (add-ins by framework)."""

    target_frameworks: Sequence[str] = ()
    add_ins: Mapping[str, Sequence[str]] = field(default_factory=dict)
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""


# Unless a test says otherwise a build fails, so that nothing is found by accident.
FAILING_BUILD = Build(exit_code=1, stderr="MSBUILD : error MSB1003: no build was expected here\n")


class FakeDotNet:
    def __init__(
        self,
        sdks: Sequence[str] = ("10.0.401",),
        runtimes: Sequence[str] = ("10.0.12",),
        build: Build = FAILING_BUILD,
        evaluation: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    ) -> None:
        """`evaluation`: the add-ins that `msbuild -getItem` names, by project and framework; None: unknown to it."""
        self.sdks = sdks
        self.runtimes = runtimes
        self.build = build
        self.evaluation = evaluation
        self.root = Path()

    def install(self, root: Path) -> None:
        self.root = root
        for version in self.sdks:
            _write(root / "sdk" / version / "dotnet.dll", "MZ")
        for version in self.runtimes:
            _write(root / "shared" / "Microsoft.NETCore.App" / version / "Microsoft.NETCore.App.deps.json", "{}")
            _write(root / "host" / "fxr" / version / "libhostfxr.so", "\x7fELF")
        answers = {
            "sdks": self.sdks,
            "runtimes": self.runtimes,
            "build": vars(self.build),
            "evaluation": self.evaluation,
        }
        _write(root / "answers.json", json.dumps(answers))
        write_program(root / "dotnet", _SCRIPT.format(python=sys.executable))

    def calls(self) -> list[list[str]]:
        """The argument lists it was called with."""
        return [call["argv"] for call in self._log()]

    def build_calls(self) -> list[list[str]]:
        return [argv for argv in self.calls() if argv[:1] == ["build"]]

    def evaluation_calls(self) -> list[list[str]]:
        return [argv for argv in self.calls() if argv[:1] == ["msbuild"]]

    def build_folders(self) -> list[str]:
        """The working directories of the builds."""
        return [call["cwd"] for call in self._log() if call["argv"][:1] == ["build"]]

    def _log(self) -> list[dict[str, Any]]:
        log = self.root / "calls.jsonl"
        return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


def write_program(path: Path, script: str) -> None:
    """A Python script that begins with `#!`, as a program that other programs can start."""
    if os.name != "nt":
        _write(path, script)
        path.chmod(0o755)
        return
    # pip's launcher reads the line, and the archive behind it.
    first, _, rest = script.partition("\n")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("__main__.py", rest.replace("__file__", "sys.argv[0]"))
    (wheel,) = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")
    with zipfile.ZipFile(wheel) as files:
        launcher = files.read("pip/_vendor/distlib/t64.exe")
    path.with_suffix(".exe").write_bytes(launcher + first.encode() + b"\n" + archive.getvalue())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
