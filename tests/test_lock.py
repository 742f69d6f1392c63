"""What `make` installs: only files whose hashes are in `requirements/`, and all that `pyproject.toml` asks for."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.pythons import TESTED
from support.lock import FOLDER, PARTS, PROJECT, ROOT, build_requirements

PYTHONS = [f"{major}.{minor}" for major, minor in TESTED]
SYSTEMS = [("linux", "Linux", "x86_64"), ("linux", "Linux", "aarch64"), ("darwin", "Darwin", "arm64")]
SYSTEMS += [("darwin", "Darwin", "x86_64"), ("win32", "Windows", "AMD64")]
_HASH = r"--hash=sha256:[0-9a-f]{64}"
_PIN = re.compile(rf"(?P<requirement>\w\S*(?:, [^\s\]]+)*\]?==[^\s;]+(?: ; [^\\\n]+)?)(?: \\\n {{4}}{_HASH})+\n")


class Pin(NamedTuple):
    version: str
    marker: Marker | None

    def holds(self, environment: dict[str, str]) -> bool:
        return self.marker is None or self.marker.evaluate(environment)


Pins = dict[str, list[Pin]]


@pytest.mark.parametrize("part", PARTS)
def test_every_line_names_one_version_of_a_package_with_its_hashes_and_no_host(part: str) -> None:
    text = (FOLDER / f"{part}.txt").read_text("utf-8")

    rest = _PIN.sub("", text).splitlines()

    assert [line for line in rest if not line.startswith(("#", "-r "))] == []
    assert "://" not in text
    assert [line for line in rest if line.startswith("-r ")] == [f"-r {before}.txt" for before in PARTS[part]]


@pytest.mark.parametrize(("python", "system"), [*product(PYTHONS, SYSTEMS)])
def test_the_lock_has_what_the_project_asks_for_on_every_system(python: str, system: tuple[str, str, str]) -> None:
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    extras, environment = project["optional-dependencies"], _environment(python, *system)
    asked = {"run": project["dependencies"], "build": build_requirements()}
    asked |= {"dev": [*extras["dev"], *extras["sdk"], *extras["login"], *extras["keyring"]], "proof": extras["proof"]}

    for part, requirements in asked.items():
        pins = _pins(part)
        for requirement in map(Requirement, requirements):
            assert not _lacks(requirement, pins, environment), f"{requirement} is not in {part}.txt: make lock"


def test_these_tests_run_with_the_versions_of_the_lock() -> None:
    environment = {**default_environment(), "extra": ""}
    wanted = {
        name: pin.version for name, pins in _pins("dev").items() for pin in pins if pin.holds(_as_strings(environment))
    }

    assert {name: _installed(name) for name in wanted} == wanted, "make setup"


def test_what_the_locked_packages_need_is_locked_too() -> None:
    """As their metadata says it, here; for other systems uv has seen to it."""
    pins = _pins("proof")
    lacking = [
        f"{name} needs {requirement}"
        for name in pins
        if _installed(name) is not None
        for text in distribution(name).requires or ()
        if _lacks(requirement := Requirement(text), pins, _as_strings({**default_environment(), "extra": ""}))
    ]

    assert lacking == []


INSTALLS = re.compile(r"\bpip3? (install|download|wheel)\b|\buv (pip|sync|tool|add)\b|\buvx\b|\bpipx\b|\bnpm\b")
LOCKED = ("--require-hashes --only-binary :all:", "--no-build-isolation --no-deps --editable .")


def test_make_installs_nothing_else() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")

    installing = [line for line in makefile.splitlines() if INSTALLS.search(line)]

    assert [line.endswith(how) for line, how in zip(installing, LOCKED, strict=True)] == [True, True]


NPM_LOCKS = [path for top in ("tests", "examples") for path in sorted((ROOT / top).rglob("package-lock.json"))]
NPM_LOCKS = [path for path in NPM_LOCKS if "node_modules" not in path.parts]


@pytest.mark.parametrize("path", NPM_LOCKS, ids=lambda path: path.parent.name)
def test_packages_of_npm_are_locked_by_their_content_and_not_by_where_they_come_from(path: Path) -> None:
    asked, lock = (json.loads((path.parent / name).read_text("utf-8")) for name in ("package.json", path.name))

    packages: dict[str, Any] = lock["packages"]
    own = packages.pop("")

    assert {kind: own.get(kind) for kind in ("dependencies", "devDependencies")} == {
        kind: asked.get(kind) for kind in ("dependencies", "devDependencies")
    }, "npm install --package-lock-only --omit-lockfile-registry-resolved"
    assert [name for name, one in packages.items() if "integrity" not in one or "resolved" in one] == []


def _pins(part: str) -> Pins:
    """All pins of a part, and of those that it builds on."""
    found: Pins = {}
    for one in (*PARTS[part], part):
        if one != part:
            found |= _pins(one)
            continue
        for match in _PIN.finditer((FOLDER / f"{part}.txt").read_text("utf-8")):
            requirement = Requirement(match["requirement"])
            (specifier,) = requirement.specifier
            found.setdefault(canonicalize_name(requirement.name), []).append(Pin(specifier.version, requirement.marker))
    return found


def _lacks(requirement: Requirement, pins: Pins, environment: dict[str, str]) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate(environment):
        return False
    versions = [pin.version for pin in pins.get(canonicalize_name(requirement.name), ()) if pin.holds(environment)]
    return len(versions) != 1 or not requirement.specifier.contains(versions[0], prereleases=True)


def _installed(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def _environment(python: str, sys_platform: str, platform_system: str, machine: str) -> dict[str, str]:
    known = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": sys_platform,
        "platform_system": platform_system,
        "platform_machine": machine,
        "os_name": "nt" if sys_platform == "win32" else "posix",
        "extra": "",
    }
    return _as_strings({**default_environment(), **known})


def _as_strings(environment: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in environment.items()}
