"""The 34 projects of which the .NET command line was asked (SDK 10.0.401), and a `dotnet` that gives these answers.

Recorded in `golden/dotnet-cli/projects.json`: the files of each project, the question, and the answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from support.files import write, write_all
from support.golden import GOLDEN

PROJECTS: dict[str, dict[str, Any]] = {
    project["id"]: project for project in json.loads((GOLDEN / "dotnet-cli" / "projects.json").read_text("utf-8"))
}
_SCRIPT = r"""#!{python} -IS
import json, os, sys

root = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(root, "calls.jsonl"), "a", encoding="utf-8") as stream:
    stream.write(json.dumps(sys.argv[1:]) + "\n")
with open(os.path.join(root, "answers.json"), encoding="utf-8") as stream:
    answer = json.load(stream).get(sys.argv[2])
if answer is None or not any(word.startswith("-getItem:") for word in sys.argv):
    print("MSBUILD : error MSB1001: Unknown switch.")
    sys.exit(1)
framework = [word.partition("=")[2] for word in sys.argv if word.startswith("-p:TargetFramework=")]
print("Welcome to .NET!\n")  # what may precede an answer
print(json.dumps(answer[framework[0] if framework else ""]))
"""


class RecordedProject:
    """A recorded project on disk."""

    def __init__(self, identity: str, folder: Path) -> None:
        self._recorded = PROJECTS[identity]
        self.folder = folder
        self.path = folder / self._recorded["entry"]
        write_all(folder, self._recorded["files"])
        (folder / ".devtools").mkdir(parents=True)

    def placed(self, text: str) -> str:
        return text.replace("{DIR}", str(self.folder)).replace("{HOME}", "/home/u")

    @property
    def failed(self) -> bool:
        return bool(self._recorded["exit_code"])

    def property(self, name: str) -> str:
        return self.placed(self._recorded["properties"][name])

    def items(self, kind: str) -> list[dict[str, str]]:
        """The items as the command line prints them."""
        found = self._recorded["items"].get(kind, [])
        return [{**item, "FullPath": self.placed(item["full_path"])} for item in found]

    def answer(self) -> dict[str, Any]:
        properties = {name: self.property(name) for name in self._recorded["properties"]}
        return {"Properties": properties, "Items": {kind: self.items(kind) for kind in self._recorded["items"]}}


class RecordedDotNet:
    """A `dotnet` in a folder for PATH; it answers questions about the projects that it was told of."""

    def __init__(self, folder: Path, sdk: str = "10.0.401") -> None:
        self.folder = folder
        (folder / "host" / "fxr").mkdir(parents=True)
        (folder / "sdk" / sdk).mkdir(parents=True)
        write(folder / "dotnet", _SCRIPT.replace("{python}", sys.executable)).chmod(0o755)
        self._answers: dict[str, dict[str, Any]] = {}
        self.environ = {"PATH": str(folder), "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}

    def knows(self, path: Path, answer: dict[str, Any], framework: str = "") -> None:
        self._answers.setdefault(str(path), {})[framework] = answer
        write(self.folder / "answers.json", json.dumps(self._answers))

    def runtime(self, version: str) -> None:
        (self.folder / "shared" / "Microsoft.NETCore.App" / version).mkdir(parents=True)

    def calls(self) -> list[list[str]]:
        log = self.folder / "calls.jsonl"
        return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []
