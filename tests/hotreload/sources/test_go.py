"""The files of Go modules, and the modules that they use."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotreload.sources.found import assert_noticed, names, sources_of
from support.files import write, write_all


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
