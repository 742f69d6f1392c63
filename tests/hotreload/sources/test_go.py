"""The files of Go modules, and the modules that they use."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hotreload.sources.found import assert_noticed, names, sources_of
from support.files import write, write_all
from support.programs import needed
from uno_devserver.hotreload.sources.go import main_package, run_package


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    write_all(
        tmp_path,
        {
            "server/go.mod": "module example.com/server\n\ngo 1.22\n",
            "server/main.go": "package main\n",
            "lib/go.mod": "module example.com/lib // ours\n",
            "lib/lib.go": "package lib\n",
            "deep/go.mod": "module example.com/deep\n",
            "deep/deep.go": "package deep\n",
        },
    )
    return tmp_path


def test_a_module_has_its_code_and_neither_tests_nor_other_modules(tmp_path: Path) -> None:
    code = ["go.mod", "go.sum", "main.go", "inner/a.go", "inner/b.c", "inner/b.h"]
    others = [
        "main_test.go",
        "_old/x.go",
        "testdata/x.go",
        "vendor/v/v.go",
        ".x/y.go",
        "tool/go.mod",
        "tool/t.go",
        "a.md",
    ]
    write_all(tmp_path, dict.fromkeys([*code, *others], ""))

    sources = sources_of(tmp_path)

    assert sorted(sources.files) == sorted(code)
    assert sources.packages[0].kind == "Go"


def test_embedded_files_are_code(tmp_path: Path) -> None:
    text = 'package main\n\n//go:embed "a b.txt" views/*.html\n//go:embed all:static\nvar files embed.FS\n'
    write_all(tmp_path, {"go.mod": "module m\n", "web/x.go": text, "web/a b.txt": "", "web/views/p.html": ""})
    write_all(tmp_path, {"web/views/p.css": "", "web/static/deep/i.js": "", "notes.txt": ""})

    assert names(tmp_path) == ["go.mod", "web/a b.txt", "web/static/deep/i.js", "web/views/p.html", "web/x.go"]
    assert_noticed(tmp_path, tmp_path / "web/views/p.html", "<p>")


@pytest.mark.parametrize(
    "replace",
    [
        "replace example.com/lib => ../lib\n",
        "replace example.com/lib v1.2.3 => ../lib // for now\n",
        "replace (\n\texample.com/x => example.com/y v1.0.0\n\texample.com/lib => ../lib\n)\n",
    ],
)
def test_a_replaced_module_counts(repository: Path, replace: str) -> None:
    write(repository / "server/go.mod", f"module example.com/server\n\nrequire example.com/lib v1.2.3\n\n{replace}")

    assert names(repository / "server") == ["../lib/go.mod", "../lib/lib.go", "go.mod", "main.go"]
    assert_noticed(repository / "server", repository / "lib/lib.go")


def test_a_module_outside_of_the_repository_does_not_count(repository: Path) -> None:
    (repository / ".git").rename(repository / "server/.git")
    write(repository / "server/go.mod", "module example.com/server\nreplace example.com/lib => ../lib\n")

    assert names(repository / "server") == ["go.mod", "main.go"]


def test_modules_of_a_workspace_count_if_they_are_required(repository: Path) -> None:
    write(repository / "server/go.mod", "module example.com/server\nrequire (\n\texample.com/lib v0.0.0\n)\n")
    write(repository / "lib/go.mod", "module example.com/lib\nrequire example.com/deep v0.0.0\n")
    write(repository / "go.work", "go 1.22\n\nuse (\n\t./server\n\t./lib\n\t./deep\n\t./missing\n)\n")

    assert [name for name in names(repository / "server") if name.endswith(".go")] == [
        "../deep/deep.go",
        "../lib/lib.go",
        "main.go",
    ]


def test_a_workspace_that_appears_is_noticed(repository: Path) -> None:
    from hotreload.trees import watched

    write(repository / "server/go.mod", "module example.com/server\nrequire example.com/lib v0.0.0\n")
    with watched(repository / "server") as one:
        write(repository / "go.work", "use ./server\nuse ./lib\n")

        assert one.news() is True
        one.digest()
        assert "../lib/lib.go" in one.files


# The package of a program.

MAIN = "package main\n\nfunc main() {}\n"
SYSTEM = {"linux": "linux", "darwin": "darwin", "win32": "windows"}[sys.platform]


def test_a_program_that_does_not_exist_is_that_of_the_only_main_package(tmp_path: Path) -> None:
    write_all(tmp_path, {"go.mod": "module x\n", "lib/lib.go": "package lib\n", "cmd/s/main.go": MAIN})
    write(tmp_path / "gen.go", "//go:build ignore\n\n" + MAIN)
    assert main_package(str(tmp_path / "bin/s"), str(tmp_path)) == "./cmd/s"
    assert main_package(str(tmp_path / "run.sh"), str(tmp_path)) is None
    assert main_package(str(tmp_path.parent / "s"), str(tmp_path)) is None, "outside of the module"

    write(tmp_path / "cmd/t/main.go", MAIN)

    assert main_package(str(tmp_path / "bin/s"), str(tmp_path)) is None


def test_what_is_no_program_of_go_is_of_no_package(tmp_path: Path) -> None:
    write_all(tmp_path, {"go.mod": "module x\n", "main.go": MAIN, "s": "#!/bin/sh\n", "empty": ""})
    (tmp_path / "linked").symlink_to(sys.executable)

    assert [main_package(str(tmp_path / name), str(tmp_path)) for name in ("s", "empty", "linked")] == [None] * 3


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["./cmd/s"], "./cmd/s"),
        (["cmd/s/main.go"], None),  # of single files: no package has the same program
        (["-tags", "x", "./cmd/s"], None),
        (["-ldflags", "-s", "./cmd/s"], None),
    ],
)
def test_a_program_names_its_package_and_other_options_than_the_usual_are_not_repeated(
    tmp_path: Path, words: list[str], package: str | None
) -> None:
    write_all(tmp_path, {"go.mod": "module example.com/x\n", "cmd/s/main.go": MAIN})
    cache = {"GOCACHE": str(Path(sys.prefix) / "go-cache"), "GOFLAGS": "-mod=mod"}
    line = [str(needed("golang")), "build", "-o", "bin/s", *words]
    subprocess.run(line, cwd=tmp_path, env={**os.environ, **cache}, check=True, timeout=60)

    assert main_package(str(tmp_path / "bin/s"), str(tmp_path)) == package


def described(path: Path, *lines: str, length: bytes | None = None) -> str:
    """A program with this description of its build."""
    text = b"M" * 16 + "".join(f"{line}\n" for line in lines).encode() + b"M" * 16
    size = bytes([len(text) & 0x7F | 0x80, len(text) >> 7]) if length is None else length
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"\x7fELF".ljust(16, b"\0") + b"\xff Go buildinf:\x08\x02".ljust(32, b"\0") + b"\x03go1" + size + text
    )
    return str(path)


OURS = ("path\tx/cmd/s", "mod\tx\t(devel)\t", f"build\tGOOS={SYSTEM}")


@pytest.mark.parametrize(
    ("lines", "package"),
    [
        (OURS, "./cmd/s"),
        (("path\tcommand-line-arguments", OURS[2]), None),
        ((OURS[0], "mod\tx/cmd\t(devel)\t", OURS[2]), None),
        ((OURS[0], "mod\tother\t(devel)\t", OURS[2]), None),
        ((*OURS[:2], "build\tGOOS=plan9"), None),
        ((*OURS, "build\t-buildmode=plugin"), None),
        (("path", "build", "mod"), None),
        ((), None),
    ],
)
def test_no_other_program_is_built_into_a_file(tmp_path: Path, lines: tuple[str, ...], package: str | None) -> None:
    write_all(tmp_path, {"go.mod": "module x\n", "cmd/s/main.go": MAIN})

    assert main_package(described(tmp_path / "bin/s", *lines), str(tmp_path)) == package


def test_hostile_build_infos_take_little_time(tmp_path: Path) -> None:
    write_all(tmp_path, {"go.mod": "module x\n", "cmd/s/main.go": MAIN})
    described(tmp_path / "endless", *OURS, length=b"\xff" * 4_000_000)
    (tmp_path / "marks").write_bytes(b" " + b"\xff Go buildinf: " * 2_000_000)
    os.mkfifo(tmp_path / "fifo")
    begun = time.process_time()

    found = [main_package(str(tmp_path / name), str(tmp_path)) for name in ("endless", "marks", "fifo")]

    assert found == [None] * 3
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("directory", "command", "package"),
    [
        ("", "go run .", "."),
        ("", "go run ./cmd/server --port 1", "./cmd/server"),
        ("", "/usr/lib/go/bin/go run cmd/server/main.go data.txt", "./cmd/server/main.go"),
        ("cmd", "go run ./server", "./cmd/server"),
        ("", "go run main.go more.go", ""),
        ("", "go run -tags x .", ""),
        ("", "go run example.com/server/cmd@latest", ""),
        ("", "go run ../other", ""),
        ("", "go run ./...", ""),
        ("", "go run", ""),
        ("", "go vet .", ""),
    ],
)
def test_the_package_of_go_run_is_what_it_names(tmp_path: Path, directory: str, command: str, package: str) -> None:
    (tmp_path / "cmd/server").mkdir(parents=True)

    assert run_package(command.split(), str(tmp_path / directory), str(tmp_path)) == package
