"""What `make release-check ARGS=--publish` refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from release import run
from release.building import ROOT, Built
from release.publishing import keep, problems
from support.files import write, write_all
from support.git import git

FILES = {
    "src/uno_devserver/__init__.py": '__version__ = "1.2.3"\n',
    "pyproject.toml": '[project.urls]\nRepository = "https://git.example/uno"\n',
    "README.md": "Install it. [More](https://git.example/uno/docs), [below](#below).\n",
    "CHANGELOG.md": "# Changelog\n\n## [1.2.3] - 2026-12-01\n\n## [1.2.2] - 2026-11-30\n",
    ".github/ISSUE_TEMPLATE/config.yml": "contact_links: []\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    write_all(root, FILES)
    git(root, "init", "--quiet")
    _release(root)
    return root


def test_a_tagged_commit_of_a_version_may_be_published(checkout: Path) -> None:
    assert problems(checkout) == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "pyproject.toml",
            '[project.urls]\nRepository = "https://repository.invalid/x"\n',
            "pyproject.toml:2: https://repository.invalid/x is a placeholder",
        ),
        (
            ".github/ISSUE_TEMPLATE/config.yml",
            "url: https://a.invalid\n",
            ".github/ISSUE_TEMPLATE/config.yml:1: https://a.invalid is a placeholder",
        ),
        ("SECURITY.md", "Write to <me@a.invalid>.", "SECURITY.md:1: me@a.invalid is a placeholder"),
        (
            "README.md",
            "[More](docs/README.md#more), ![Picture](docs/picture.png), [again](docs/README.md#more).",
            "README.md: these links lead nowhere on a package index: docs/README.md#more, docs/picture.png",
        ),
        (
            "README.md",
            "There is no release yet, so install from a clone.",
            "README.md: says \N{LEFT DOUBLE QUOTATION MARK}There is no release yet\N{RIGHT DOUBLE QUOTATION MARK}",
        ),
        (
            "CHANGELOG.md",
            "## [Unreleased]\n\n## [1.2.3] - 2026-12-01\n",
            "CHANGELOG.md: begins with [Unreleased], not with [1.2.3] and its date",
        ),
    ],
)
def test_what_a_reader_must_not_see_is_refused(checkout: Path, name: str, text: str, problem: str) -> None:
    write(checkout / name, text)
    _release(checkout)

    assert problems(checkout) == [problem]


def test_a_version_that_is_none_of_a_release_is_refused(checkout: Path) -> None:
    write(checkout / "src/uno_devserver/__init__.py", '__version__ = "1.2.3.dev0"\n')
    _release(checkout)

    assert problems(checkout) == ["src/uno_devserver/__init__.py: 1.2.3.dev0 is no version of a release, as 1.2.3 is"]


def test_a_commit_without_its_tag_is_refused(checkout: Path) -> None:
    git(checkout, "tag", "--delete", "v1.2.3")

    assert problems(checkout) == ["git: the commit has no tag v1.2.3"]


def test_what_is_not_committed_is_refused(checkout: Path) -> None:
    write(checkout / "src/uno_devserver/new.py", "")

    assert problems(checkout) == ["git: there are changes that are not committed"]


def test_nothing_is_built_where_something_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "--publish"])
    monkeypatch.setattr(run, "problems", lambda root: [f"{root.name}: wrong", "and more"])

    assert run.main() == 1
    assert capsys.readouterr().out == f"This must not be published:\n{ROOT.name}: wrong\nand more\n"


def test_only_what_was_tried_is_in_the_folder_that_is_uploaded(tmp_path: Path) -> None:
    sdist, wheel, other = (write(tmp_path / "built" / name, name) for name in ("a.tar.gz", "a.whl", "pip.whl"))
    write(tmp_path / "dist" / "old.whl", "")

    keep(Built("1.2.3", sdist, wheel, other), tmp_path / "dist")

    assert sorted(path.name for path in (tmp_path / "dist").iterdir()) == ["a.tar.gz", "a.whl"]


def _release(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "Release")
    git(root, "tag", "--force", "v1.2.3")
