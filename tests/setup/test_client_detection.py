"""Whether a client is there: by its files, its own folders, its program, and by nothing that others own."""

from __future__ import annotations

from pathlib import Path

import pytest

from uno_devserver.setup.client_detection import detected
from uno_devserver.setup.paths import Here
from uno_devserver.setup.profiles import ClientCli, Scope, Use

from .made import client, here_at, place


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return here_at(tmp_path, {"PATH": str(tmp_path / "bin")})


def test_folders_that_everybody_has_show_nothing(here: Here) -> None:
    places = [
        place(Path(here.workspace, ".mcp.json")),
        place(Path(here.home, ".claude.json"), Scope.USER),
        place(Path(here.home, ".config", "mcp.json"), Scope.USER),
        place(Path(here.workspace, ".github", "mcp.json")),
    ]
    Path(here.workspace, ".github").mkdir()

    assert not detected(client(*places), here)


def test_a_folder_of_its_own_shows_the_client_before_it_has_a_file(here: Here) -> None:
    cursor = client(place(Path(here.home, ".cursor", "mcp.json")))
    before = detected(cursor, here)

    Path(here.home, ".cursor").mkdir()

    assert not before
    assert detected(cursor, here)


@pytest.mark.parametrize(
    ("use", "counts"), [(Use.WRITE, True), (Use.READ, True), (Use.LEGACY, True), (Use.SHARED, False)]
)
def test_a_file_counts_unless_it_is_another_clients(use: Use, counts: bool, here: Here) -> None:
    file = Path(here.workspace, ".mcp.json")
    file.write_text("{}")

    assert detected(client(place(file, use=use)), here) is counts


def test_a_sign_shows_the_client(here: Here) -> None:
    sign = Path(here.home, ".claude")
    sign.mkdir()

    assert detected(client(signs=(str(sign),)), here)


def test_the_program_on_path_shows_the_client(here: Here, tmp_path: Path) -> None:
    codex = client(cli=ClientCli("codex", ()))
    file = tmp_path / "bin" / "codex"
    file.parent.mkdir()
    file.write_text("#!/bin/sh\n")
    as_document = detected(codex, here)

    file.chmod(0o755)

    assert not as_document
    assert detected(codex, here)


def test_what_is_no_client_is_never_detected(here: Here) -> None:
    file = Path(here.workspace, ".vscode", "mcp.json")
    file.parent.mkdir()
    file.write_text("{}")

    assert not detected(client(place(file), hidden=True), here)
