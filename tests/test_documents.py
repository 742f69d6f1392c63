"""Tests, files, headings and targets that documents name exist. Their commands and snippets are run in `documents/`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documents.blocks import PAGES, ROOT

TESTS = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text("utf-8"), re.MULTILINE)
}
PLACES = ("", "src/uno_devserver/", "src/uno_devserver/**/", "tests/")


def test_every_test_that_a_document_names_exists() -> None:
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))}

    assert named
    assert named - TESTS == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_documents_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_heading_finds_it(page: Path) -> None:
    for target, name in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text("utf-8")):
        headings = re.findall(r"^#+ (.*)", (page.parent / target if target else page).read_text("utf-8"), re.MULTILINE)

        assert name in {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_every_target_of_make_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"`make ([a-z-]+)", page.read_text("utf-8"))}

    assert named
    assert named - targets == set()


@pytest.mark.parametrize("name", ["AGENTS.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_every_file_that_a_map_of_the_code_names_exists(name: str) -> None:
    """Paths there begin at the repository or at the package; a bare name is any file below these."""
    page = re.sub(r"```.*?```", "", (ROOT / name).read_text("utf-8"), flags=re.DOTALL)
    named = set(re.findall(r"`((?:[\w.*-]+/)*[\w*]+\.(?:py|js))`", page))

    assert [
        path for path in sorted(named) if not any(found for place in PLACES for found in ROOT.glob(f"{place}{path}"))
    ] == []
