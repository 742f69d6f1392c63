"""`addin check`: what discovery would find in a package, and why not, from a .nupkg and from a folder."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from documents.blocks import blocks
from support.files import snapshot, write, write_all
from support.machine import Machine, Result
from support.packages import (
    DLL,
    Package,
    build_add_in,
    direct_add_in,
    library,
    manifest_add_in,
    property_add_in,
    targets,
    tools_only,
)

HERE = "$(MSBuildThisFileDirectory)../tools/devserver/"


@pytest.fixture(params=["nupkg", "folder"])
def check(request: pytest.FixtureRequest, machine: Machine) -> Callable[[Package], Result]:
    def run(package: Package) -> Result:
        if request.param == "folder":
            path = machine.root / "unpacked"
            write_all(path, package.all_files)
        else:
            path = package.pack(machine.root)
        before = snapshot(machine.root)
        result = machine.run("addin", "check", str(path), "--json")
        assert snapshot(machine.root) == before, "nothing is written, and nothing is left"
        return result

    return run


@pytest.mark.parametrize("kind", [direct_add_in, property_add_in, manifest_add_in])
def test_a_good_package_is_found_with_its_id_version_and_entry_point(
    check: Callable[[Package], Result], kind: Callable[..., Package]
) -> None:
    result = check(kind("Acme.Tool", "1.2.0-beta.1"))

    assert (result.exit_code, result.json["issues"]) == (0, [])
    assert (result.json["package"], result.json["version"]) == ("Acme.Tool", "1.2.0-beta.1")
    (found,) = result.json["addIns"]
    assert found["entryPoint"] == "tools/devserver/Acme.Tool.dll"
    assert found["certain"]


@pytest.mark.parametrize(
    ("package", "code", "named"),
    [
        (library("Acme.Lib"), "AddInEntryPointUnknown", "Acme.Lib"),
        (tools_only("Acme.Tool"), "AddInEntryPointUnknown", "Acme.Tool"),
        (
            direct_add_in("Acme.Tool").without_files("tools/devserver/Acme.Tool.dll"),
            "AddInBinaryNotFound",
            "tools/devserver/Acme.Tool.dll",
        ),
        (
            direct_add_in("Acme.Tool").with_files({"tools/devserver/Acme.Tool.dll": b""}),
            "AddInBinaryCorrupted",
            "empty",
        ),
        (
            direct_add_in("Acme.Tool").with_files({"tools/devserver/Acme.Tool.dll": b"text"}),
            "AddInBinaryCorrupted",
            "not a .NET assembly",
        ),
        (
            Package(
                "Acme.Tool", "1.0.0", {"buildTransitive/Other.targets": targets(HERE + "A.dll"), "tools/A.dll": DLL}
            ),
            "AddInEntryPointUnknown",
            "Acme.Tool.targets",
        ),
        (
            Package(
                "Acme.Tool", "1.0.0", {"buildTransitive/Acme.Tool.targets": targets("tools/A.dll"), "tools/A.dll": DLL}
            ),
            "AddInEntryPointRefused",
            "not inside the package",
        ),
        (
            direct_add_in("Acme.Tool").with_files({"buildTransitive/Acme.Tool.targets": targets("../tools/A.dll")}),
            "AddInEntryPointRefused",
            "names <project>/../tools/A.dll, which is not inside the package",
        ),
        (
            direct_add_in("Acme.Tool").with_files(
                {
                    "buildTransitive/Acme.Tool.targets": targets(HERE + "Acme.Tool.dll")
                    .replace("<ItemGroup>", '<Target Name="Late"><ItemGroup>')
                    .replace("</ItemGroup>", "</ItemGroup></Target>")
                }
            ),
            "AddInEntryPointUnknown",
            "buildTransitive/Acme.Tool.targets names its add-in inside a <Target>",
        ),
        (
            direct_add_in("Acme.Tool").with_files({"buildTransitive/Acme.Tool.targets": "<Project"}),
            "AddInTargetsInvalid",
            "buildTransitive/Acme.Tool.targets",
        ),
        (
            manifest_add_in("Acme.Tool", entries=[{"entryPoint": "../other/A.dll"}]),
            "AddInEntryPointRefused",
            "../other/A.dll",
        ),
        (manifest_add_in("Acme.Tool", entries=[{"minHostVersion": "6.0.0"}]), "AddInManifestInvalid", "entryPoint"),
        (manifest_add_in("Acme.Tool", entries=[]), "AddInManifestInvalid", "lists no add-ins"),
        (
            manifest_add_in(
                "Acme.Tool", entries=[{"entryPoint": "tools/devserver/Acme.Tool.dll", "MinHostVersion": "soon"}]
            ),
            "AddInManifestInvalid",
            "soon",
        ),
        (manifest_add_in("Acme.Tool", manifest_version=2), "AddInManifestUnsupported", "version 2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_package_in_which_nothing_would_be_found_is_told_why(
    check: Callable[[Package], Result], package: Package, code: str, named: str
) -> None:
    result = check(package)

    assert result.exit_code == 1
    issue = result.issues(code)[0]
    assert named in issue["message"].replace("\\", "/")
    assert "package's author" not in issue["remediation"], "the reader is the author"
    assert "/tmp" not in issue["message"], "paths are those of the package"


@pytest.mark.parametrize(
    ("package", "code"),
    [
        (build_add_in("Acme.Tool"), "AddInTargetsDeprecated"),
        (
            direct_add_in("Acme.Tool").with_files(
                {"buildTransitive/Acme.Tool.targets": targets(HERE + "Acme.Tool.dll", item_condition="'$(X)' == 'y'")}
            ),
            "AddInConditionUnknown",
        ),
    ],
    ids=["build folder", "condition"],
)
def test_what_only_deserves_a_remark_is_found_all_the_same(
    check: Callable[[Package], Result], package: Package, code: str
) -> None:
    result = check(package)

    assert (result.exit_code, result.issue_codes, len(result.json["addIns"])) == (0, [code], 1)


def test_people_see_what_fails_the_check_apart_from_what_does_not(machine: Machine) -> None:
    remark = machine.run("addin", "check", str(build_add_in("Acme.Old").pack(machine.root)))
    problem = machine.run("addin", "check", str(library("Acme.Lib").pack(machine.root)))

    assert (remark.exit_code, "Warnings:" in remark.stdout, "Problems:" in remark.stdout) == (0, True, False)
    assert (problem.exit_code, "Warnings:" in problem.stdout, "Problems:" in problem.stdout) == (1, False, True)


def test_a_framework_folder_counts_and_build_beside_build_transitive_does_not(
    check: Callable[[Package], Result],
) -> None:
    here = "$(MSBuildThisFileDirectory)../../tools/devserver/Acme.Tool.dll"
    files: dict[str, Any] = {
        "buildTransitive/net10.0/Acme.Tool.targets": targets(here),
        "build/Acme.Tool.targets": targets(HERE + "Wrong.dll"),
        "tools/devserver/Acme.Tool.dll": DLL,
    }

    result = check(Package("Acme.Tool", "1.0.0", files))

    assert (result.exit_code, result.issue_codes) == (0, [])
    assert [found["entryPoint"] for found in result.json["addIns"]] == ["tools/devserver/Acme.Tool.dll"]


def test_the_report_for_people_names_the_add_in_and_the_file_that_declares_it(machine: Machine) -> None:
    path = direct_add_in("Acme.Tool").pack(machine.root)

    result = machine.run("addin", "check", str(path))

    assert result.exit_code == 0
    assert "tools/devserver/Acme.Tool.dll (by buildTransitive/Acme.Tool.targets)" in result.stdout


def test_the_examples_of_the_guide_are_good_packages(machine: Machine) -> None:
    page = (Path(__file__).parents[2] / "docs" / "dotnet-addins.md",)
    manifest = blocks("json", pages=page)[0].text
    item = next(block.text for block in blocks("xml", pages=page) if "UnoRemoteControlAddIns" in block.text)
    declarations = {"devserver-addin.json": manifest, "buildTransitive/Acme.Tool.targets": item}

    for name, text in declarations.items():
        package = Package("Acme.Tool", "1.0.0", {name: text, "tools/devserver/Acme.Tool.dll": DLL})
        result = machine.run("addin", "check", str(package.pack(machine.root)), "--json")
        assert (result.exit_code, result.json["addIns"][0]["declaredIn"]) == (0, name)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", json.dumps({}).encode()])
def test_a_file_that_is_no_package_is_an_error_with_the_next_step(machine: Machine, content: bytes) -> None:
    result = machine.run("addin", "check", str(write(machine.root / "x.nupkg", content)))

    assert result.exit_code == 1
    assert "x.nupkg cannot be read as a package" in result.stderr


def test_a_package_without_a_nuspec_is_an_error_that_says_so(machine: Machine) -> None:
    path = machine.root / "Acme.Tool.1.0.0.nupkg"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("buildTransitive/Acme.Tool.targets", "<Project />")

    result = machine.run("addin", "check", str(path))

    assert result.exit_code == 1
    assert f"{path} has no .nuspec at its root" in result.stderr
    assert "dotnet pack" in result.stderr


@pytest.mark.parametrize(("argv", "code"), [((), 2), (("nowhere.nupkg",), 1)])
def test_a_missing_package_is_an_error(machine: Machine, argv: tuple[str, ...], code: int) -> None:
    assert machine.run("addin", "check", *argv).exit_code == code


def test_no_entry_of_a_package_leads_out_of_the_folder(machine: Machine) -> None:
    path = machine.root / "Evil.1.0.0.nupkg"
    with zipfile.ZipFile(path, "w") as file:
        for name in (
            "../evil.targets",
            "/evil.targets",
            "a/../../evil.targets",
            "%2e%2e/evil.targets",
            "..\\evil.targets",
        ):
            file.writestr(name, "<Project />")
    before = snapshot(machine.root)

    assert machine.run("addin", "check", str(path), "--json").exit_code == 1
    assert snapshot(machine.root) == before
    assert not [name for name in Path("/").iterdir() if name.name == "evil.targets"]
