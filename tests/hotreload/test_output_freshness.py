"""Which files count as the output that a command starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.files import write, write_all
from uno_devserver.hotreload.output_freshness import stale_output_text, started_output
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

ELF = b"\x7fELF and more"
TYPESCRIPT = {"package.json": '{"name": "s"}', "tsconfig.json": '{"include": ["src"]}', "src/index.ts": ""}


def output(root: Path, *started: str) -> list[str]:
    package = WatchedPackage(Role.SERVER, str(root), started=tuple(str(root / path) for path in started))
    return sorted(started_output(package, find_sources(package)).files)


def test_of_javascript_it_is_all_that_lies_with_the_script(tmp_path: Path) -> None:
    write_all(tmp_path, {**TYPESCRIPT, "dist/index.js": "", "dist/a/b.js": "", "dist/a.d.ts": "", "other.js": ""})

    assert output(tmp_path, "dist/index.js") == ["dist/a/b.js", "dist/index.js"]


@pytest.mark.parametrize("script", ["dist/apps/s/main.js", "apps/s/sub/dist/i.js", "apps/s/lib/i.js"])
def test_of_javascript_any_output_folder_of_the_repository_counts(tmp_path: Path, script: str) -> None:
    root = tmp_path / "build" / "apps" / "s"  # above the repository, the name of a folder means nothing
    write_all(tmp_path / "build", {".git/HEAD": "", script: "", "apps/s/bin/run.js": ""})
    write_all(root, TYPESCRIPT)

    assert output(root, f"../../{script}") == [Path(os.path.relpath(tmp_path / "build" / script, root)).as_posix()]
    assert output(root, "bin/run.js") == []


def test_the_text_names_the_output_and_not_another_argument_of_the_command(tmp_path: Path) -> None:
    package = WatchedPackage(Role.SERVER, str(tmp_path), started=(str(tmp_path / "data"), str(tmp_path / "out/s")))

    assert stale_output_text(package, ["out/a.dll", "out/s"]).startswith("out/s has not been rebuilt")


@pytest.mark.parametrize("script", ["src/index.ts", "bin/run.js", "node_modules/x/dist/index.js", "dist/gone.js"])
def test_sources_launchers_installed_and_missing_files_are_none(tmp_path: Path, script: str) -> None:
    write_all(tmp_path, {**TYPESCRIPT, "bin/run.js": "", "node_modules/x/dist/index.js": ""})

    assert output(tmp_path, script) == []


def test_of_a_net_server_it_is_each_assembly_beside_what_is_started(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.cs": "", "bin/Server.dll": "", "bin/Shared.dll": "", "bin/x.json": ""})
    write(tmp_path / "bin/Server", ELF.decode("latin-1"))

    assert output(tmp_path, "bin/Server.dll") == ["bin/Server.dll", "bin/Shared.dll"]
    assert output(tmp_path, "bin/Server") == ["bin/Server", "bin/Server.dll", "bin/Shared.dll"]


def test_an_archive_of_java_and_a_compiled_program_are_outputs(tmp_path: Path) -> None:
    write_all(tmp_path, {"Cargo.toml": "", "src/main.rs": "", "b/s.jar": "", "target/debug/s": ELF.decode("latin-1")})

    assert output(tmp_path, "b/s.jar") == ["b/s.jar"]
    assert output(tmp_path, "target/debug/s") == ["target/debug/s"]


def test_a_script_and_the_python_of_an_environment_are_none(tmp_path: Path) -> None:
    write_all(tmp_path, {"go.mod": "", "run.sh": "#!/bin/sh\nexec go run .\n", "env/pyvenv.cfg": ""})
    write(tmp_path / "env/bin/python", ELF.decode("latin-1"))
    (tmp_path / "linked").symlink_to(sys.executable)

    assert output(tmp_path, "run.sh") == output(tmp_path, "env/bin/python") == output(tmp_path, "linked") == []


@pytest.mark.parametrize(("manifest", "runner"), [("Cargo.toml", "cargo run"), ("go.mod", "go run"), ("x", "")])
def test_the_next_step_fits_the_package(tmp_path: Path, manifest: str, runner: str) -> None:
    write(tmp_path / manifest, "")
    package = WatchedPackage(Role.SERVER, str(tmp_path), started=(str(tmp_path / "bin/s"),))

    told = stale_output_text(package, ["bin/s"])

    assert told.startswith("bin/s has not been rebuilt since its code changed.")
    assert "mcpServer.build" in told
    assert (f", or start the server by '{runner}'" in told) is bool(runner)
