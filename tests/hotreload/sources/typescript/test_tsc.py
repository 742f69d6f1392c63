"""Our list of a TypeScript package's sources is the compiler's own."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from support.files import write

from .ts_projects import BUILD_CONFIG, PROJECTS, SOLUTION, Files, typescript_sources
from .tsc import OLDER, declare_version, older_tsc_files, tsc_files
from .tsc.random_projects import make_project

SEEDS = range(20)
BATCHES = 4  # so that two workers share them


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "package"


@pytest.mark.parametrize("name", PROJECTS)
def test_the_list_is_what_the_compiler_lists(name: str, root: Path) -> None:
    # Given
    lay_out(root, PROJECTS[name])

    # When
    sources = typescript_sources(root)

    # Then
    expected = tsc_files(*configs_of(name, root))
    assert set(sources.files.values()) == expected
    assert expected, "the project is to have sources"
    assert all((root / key).resolve() == Path(path).resolve() for key, path in sources.files.items())


@pytest.mark.parametrize("version", OLDER)
def test_the_list_is_what_an_older_compiler_of_the_package_lists(version: int, root: Path) -> None:
    # Given
    configs: list[tuple[str, Path]] = []
    for name, files in PROJECTS.items():
        lay_out(root / name, files)
        declare_version(root / name, version)
        configs += [(name, config) for config in configs_of(name, root / name)]

    # When
    ours = {name: set(typescript_sources(root / name).files.values()) for name in PROJECTS}

    # Then
    expected: dict[str, set[str]] = {name: set() for name in PROJECTS}
    listed = older_tsc_files([config for _, config in configs], version)
    for (name, _), files_of_config in zip(configs, listed, strict=True):
        expected[name] |= files_of_config
    assert ours == expected


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_trees_and_patterns_give_the_same_list(batch: int, root: Path) -> None:
    for seed in SEEDS[batch::BATCHES]:
        # Given
        folder = root / str(seed)
        folder.mkdir(parents=True)
        make_project(folder, Random(seed))

        # When
        sources = typescript_sources(folder)

        # Then
        assert set(sources.files.values()) == tsc_files(folder / "tsconfig.json"), f"seed {seed}"


def test_what_a_referenced_project_builds_is_no_source(root: Path) -> None:
    # Given: the compiler reads the declarations that were built from it, where they are there
    lay_out(root, SOLUTION)
    before = typescript_sources(root).files
    built = write(root / "out/core/index.d.ts", 'export * from "./part.js";')
    write(root / "out/core/part.d.ts", "export declare const part = 1;")
    assert str(built) in tsc_files(root / "app/tsconfig.app.json")

    # When
    after = typescript_sources(root).files

    # Then: a build is no edit
    assert after == before


def test_the_build_configuration_comes_before_the_other(root: Path) -> None:
    lay_out(root, BUILD_CONFIG)

    sources = typescript_sources(root)

    assert sorted(sources.files) == ["src/server.ts", "src/tools/tool.ts"]
    assert {Path(path).name for path in sources.deciding} >= {"tsconfig.build.json", "tsconfig.json", "package.json"}


def configs_of(name: str, root: Path) -> list[Path]:
    """All configurations of a project, as a build would go through them."""
    if name == "SOLUTION":
        return [root / f"{part}.json" for part in ("tsconfig", "core/tsconfig", "base/tsconfig", "app/tsconfig.app")]
    return [root / ("tsconfig.build.json" if name == "BUILD_CONFIG" else "tsconfig.json")]


def lay_out(root: Path, files: Files) -> None:
    for name, text in files.items():
        if text.startswith("-> "):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(text.removeprefix("-> "))
        else:
            write(root / name, text)
