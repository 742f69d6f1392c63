"""The real .NET of these tests: how it is called, how our C# is compiled with it, and conversations with what runs."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dotnet.install import SDK

HERE = Path(__file__).parent
PATIENCE = 60.0  # seconds for what takes one or two
MESSAGING = "Uno.UI.RemoteControl.Messaging"
FRAMEWORKS = ("Microsoft.NETCore.App", "Microsoft.AspNetCore.App")


class Sdk:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "node_modules" / SDK
        self.program = self.root / "dotnet"
        self._libraries = folder / "openssl"
        [self._sdk] = (self.root / "sdk").iterdir()

    def environment(self, home: Path) -> dict[str, str]:
        """What a process needs to run it; without ICU, as the SDK wants an old one, and without news for the user."""
        return {
            "HOME": str(home),
            "PATH": os.pathsep.join([str(self.root), "/usr/bin", "/bin"]),
            "LD_LIBRARY_PATH": str(self._libraries),
            "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
            "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
            "DOTNET_SKIP_FIRST_TIME_EXPERIENCE": "1",
            "DOTNET_MULTILEVEL_LOOKUP": "0",
            "LANG": "C.UTF-8",
        }

    def compile(self, source: str, name: str, folder: Path, *references: Path, library: bool = False) -> Path:
        """The assembly of a folder of sources, ready to run. No project and no restore, which would need packages."""
        folder.mkdir(parents=True, exist_ok=True)
        assembly = folder / f"{name}.dll"
        files = sorted((HERE / source).glob("*.cs"))
        known = [dll for pack in FRAMEWORKS for dll in sorted(self.root.glob(f"packs/{pack}.Ref/*/ref/*/*.dll"))]
        self.run(
            *(str(self._sdk / "Roslyn" / "bincore" / "csc.dll"), "-nologo", "-langversion:8.0", "-warnaserror+"),
            *(f"-target:{'library' if library else 'exe'}", f"-out:{assembly}"),
            *(f"-reference:{dll}" for dll in (*known, *references)),
            *map(str, files),
            home=folder,
        )
        for reference in references:
            (folder / reference.name).write_bytes(reference.read_bytes())
        frameworks = [{"name": framework, "version": "3.1.0"} for framework in FRAMEWORKS]
        options = {"runtimeOptions": {"tfm": "netcoreapp3.1", "frameworks": frameworks}}
        (folder / f"{name}.runtimeconfig.json").write_text(json.dumps(options), "utf-8")
        return assembly

    def compile_client(self, folder: Path) -> Path:
        messaging = self.compile("messaging", MESSAGING, folder, library=True)
        newtonsoft = self._sdk / "Newtonsoft.Json.dll"
        client = folder / "client"
        return self.compile("client", "Client", client, messaging, newtonsoft)

    def run(self, *arguments: str, home: Path, env: Mapping[str, str] | None = None, given: str = "") -> str:
        done = subprocess.run(
            [str(self.program), *arguments],
            cwd=home,
            env={**self.environment(home), **(env or {})},
            input=given,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{arguments[:3]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout


class Client:
    """The C# client, which does what other .NET programs do with a Host and its files."""

    def __init__(self, sdk: Sdk, assembly: Path, environ: Mapping[str, str]) -> None:
        self._sdk = sdk
        self._assembly = str(assembly)
        self._environ = environ

    def ask(self, *arguments: str, given: str = "") -> Any:
        """The JSON document that it prints."""
        [document] = self.lines(*arguments, given=given)
        return document

    def lines(self, *arguments: str, given: str = "") -> list[Any]:
        home = self._assembly_folder
        printed = self._sdk.run(self._assembly, *arguments, home=home, env=self._environ, given=given)
        return [json.loads(line) for line in printed.splitlines()]

    def with_environment(self, environ: Mapping[str, str]) -> Client:
        return Client(self._sdk, Path(self._assembly), {**self._environ, **environ})

    def talk(self, *arguments: str) -> Conversation:
        command = [str(self._sdk.program), self._assembly, *arguments]
        return Conversation(command, {**self._sdk.environment(self._assembly_folder), **self._environ})

    @property
    def _assembly_folder(self) -> Path:
        return Path(self._assembly).parent


class Conversation:
    """Lines of JSON with a running client; it is ended with the block."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._command = command
        self._environ = environ
        self._received: queue.Queue[Any] = queue.Queue()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, env=dict(self._environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    def send(self, *words: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        return self._received.get(timeout=PATIENCE)

    def end_input(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as stream:
            for line in stream:
                self._received.put(json.loads(line))
