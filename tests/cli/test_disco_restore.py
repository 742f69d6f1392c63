"""What restore left for every project of the solution, merged with the SDK's own list of packages."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.files import write
from support.machine import WINDOWS
from support.packages import (
    APP_MCP,
    CORE,
    SETTINGS,
    Group,
    app_mcp,
    direct_add_in,
    host,
    library,
    manifest_add_in,
    settings,
    targets,
)
from support.restore import Restored
from support.workspace import WorkspaceBuilder

ALL_FILES = ("assets", "g", "cache", "dgspec")
RESTORE_FILES = pytest.mark.parametrize("files", [ALL_FILES, ("g",), ("assets",)], ids="+".join)


@pytest.fixture
def uno(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    """A current workspace with dotnet whose SDK brings no add-ins, so that all found ones come from the projects."""
    workspace.machine.install_dotnet()
    application = settings().without_files(
        "buildTransitive/Uno.Settings.DevServer.targets", "tools/devserver/Uno.Settings.DevServer.dll"
    )
    return workspace.uno_sdk(groups=(CORE, SETTINGS)).package(host(), application)


# --- packages.json -------------------------------------------------------------------------------------------------


def _overridden(version_override: dict[str, str]) -> Group:
    return Group("settings", "1.8.0", ["Uno.Settings.DevServer"], version_override)


@pytest.mark.parametrize("cached", [["1.8.0", "1.9.0"], ["1.9.0"]], ids=["both cached", "only the override cached"])
def test_the_version_override_wins_for_the_matching_framework(workspace: WorkspaceBuilder, cached: list[str]) -> None:
    workspace.machine.install_dotnet()
    workspace.uno_sdk(groups=(CORE, _overridden({"net9.0": "1.7.0", "net10.0": "1.9.0"})))
    workspace.package(host(), *map(settings, cached)).project("App/App.csproj", restored=False).solution("App.slnx")

    result = workspace.machine.disco()

    assert result.json["settingsPackageVersion"] == "1.9.0"
    assert result.add_ins == [settings("1.9.0").dll(workspace.machine.nuget)]
    message = result.issue("PackageVersionOverridden")["message"]
    for part in ("Uno.Settings.DevServer", "1.8.0", "1.9.0"):
        assert part in message


@pytest.mark.parametrize("override", [{"net9.0": "1.9.0"}, {"net10.0": "1.8.0"}], ids=["other framework", "the same"])
def test_an_override_without_effect_is_not_reported(workspace: WorkspaceBuilder, override: dict[str, str]) -> None:
    workspace.machine.install_dotnet()
    workspace.uno_sdk(groups=(CORE, _overridden(override))).package(host(), settings("1.8.0"), settings("1.9.0"))
    workspace.project("App/App.csproj", restored=False).solution("App.slnx")

    result = workspace.machine.disco()

    assert result.json["settingsPackageVersion"] == "1.8.0"
    assert result.issues("PackageVersionOverridden") == []


@RESTORE_FILES
def test_the_restored_version_wins_over_packages_json(workspace: WorkspaceBuilder, files: tuple[str, ...]) -> None:
    workspace.uno_6_5().project("App/App.csproj", [app_mcp("1.2.0")], restore_files=files).solution("App.slnx")
    cache = workspace.machine.nuget

    result = workspace.machine.disco()

    assert result.add_ins == [settings().dll(cache), app_mcp("1.2.0").dll(cache, "Uno.UI.App.Mcp.Server.dll")]


# --- every project, wherever it lies -------------------------------------------------------------------------------


@RESTORE_FILES
def test_projects_deep_below_and_beside_the_solution_count(uno: WorkspaceBuilder, files: tuple[str, ...]) -> None:
    deep, beside = direct_add_in("Acme.Deep"), direct_add_in("Acme.Beside")
    uno.project("a/b/c/d/e/Deep/Deep.csproj", [deep], restore_files=files)
    uno.project("../outside/Beside/Beside.csproj", [beside], restore_files=files).solution("App.slnx")
    cache = uno.machine.nuget

    assert sorted(uno.machine.disco().add_ins) == sorted([deep.dll(cache), beside.dll(cache)])


def test_projects_that_are_not_in_the_solution_do_not_count(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj", [direct_add_in("Acme.In")]).solution("App.slnx")
    uno.project("Stray/Stray.csproj", [direct_add_in("Acme.Out")])

    assert [Path(path).stem for path in uno.machine.disco().add_ins] == ["Acme.In"]


@RESTORE_FILES
def test_two_projects_with_different_versions_give_both(uno: WorkspaceBuilder, files: tuple[str, ...]) -> None:
    one, two = direct_add_in("Acme.Tool", "1.0.0"), direct_add_in("Acme.Tool", "2.0.0")
    uno.project("One/One.csproj", [one], restore_files=files)
    uno.project("Two/Two.csproj", [two], restore_files=files).solution("App.slnx")
    cache = uno.machine.nuget

    assert sorted(uno.machine.disco().add_ins) == [one.dll(cache), two.dll(cache)]


def test_two_projects_in_one_folder_share_obj_and_both_count(uno: WorkspaceBuilder) -> None:
    one, two = direct_add_in("Acme.One"), direct_add_in("Acme.Two")
    uno.project("One.csproj", [one]).project("Two.csproj", [two]).solution("App.slnx")
    cache = uno.machine.nuget

    assert sorted(uno.machine.disco().add_ins) == [one.dll(cache), two.dll(cache)]


def test_every_target_framework_of_a_project_counts(uno: WorkspaceBuilder) -> None:
    nine, ten = direct_add_in("Acme.Nine"), direct_add_in("Acme.Ten")
    uno.project("App/App.csproj", restored=False, frameworks=["net9.0", "net10.0"]).solution("App.slnx")
    uno.package(nine, ten)
    Restored(uno.root / "App/App.csproj", {"net9.0": [nine], "net10.0": [ten]}, uno.machine.nuget).write()
    cache = uno.machine.nuget

    assert sorted(uno.machine.disco().add_ins) == [nine.dll(cache), ten.dll(cache)]


@RESTORE_FILES
def test_a_package_in_a_fallback_folder_is_found_there(uno: WorkspaceBuilder, files: tuple[str, ...]) -> None:
    fallback = uno.machine.root / "fallback"
    shared, own = direct_add_in("Acme.Shared"), direct_add_in("Acme.Own")
    declared = manifest_add_in("Acme.Declared")
    shared.write(fallback)
    declared.write(fallback)
    uno.project("App/App.csproj", [shared, own, declared], fallback=fallback, restore_files=files).solution("App.slnx")

    found = uno.machine.disco().add_ins

    assert sorted(found) == sorted([shared.dll(fallback), declared.dll(fallback), own.dll(uno.machine.nuget)])


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("<ImportGroup", "<!-- <ImportGroup", ["Acme.Other"]),
        (
            "Condition=\"Exists('$(NuGetPackageRoot)/acme.tool",
            "Condition=\"!Exists('$(NuGetPackageRoot)/acme.tool",
            ["Acme.Other"],
        ),
        ("<ImportGroup", "<ImportGroup Label='mine'", ["Acme.Tool", "Acme.Other"]),
        ("\n", "\r\n", ["Acme.Tool", "Acme.Other"]),
        ("\n", "", ["Acme.Tool", "Acme.Other"]),
    ],
    ids=["commented out", "other condition", "other attribute", "CRLF", "one line"],
)
def test_edited_restore_files_mean_what_they_say(uno: WorkspaceBuilder, old: str, new: str, found: list[str]) -> None:
    uno.project("App/App.csproj", [direct_add_in("Acme.Tool")], restore_files=["g"])
    uno.project("Other/Other.csproj", [direct_add_in("Acme.Other")]).solution("App.slnx")
    path = uno.root / "App/obj/App.csproj.nuget.g.targets"
    text = path.read_text("utf-8").replace(old, new)
    write(path, text.replace("</ImportGroup>", "</ImportGroup> -->") if "<!--" in text else text)

    assert [Path(add_in).stem for add_in in uno.machine.disco().add_ins] == found


def test_an_artifacts_folder_takes_the_place_of_obj(uno: WorkspaceBuilder) -> None:
    package = direct_add_in("Acme.Tool")
    text = "<Project><PropertyGroup><UseArtifactsOutput>true</UseArtifactsOutput></PropertyGroup></Project>"
    uno.file("Directory.Build.props", text).package(package)
    uno.project("src/App/App.csproj", restored=False).edit_project("src/App/App.csproj", [package]).solution("App.slnx")
    obj = uno.root / "artifacts" / "obj" / "App"
    Restored(uno.root / "src/App/App.csproj", {"net10.0": [package]}, uno.machine.nuget, folder=obj).write()

    assert uno.machine.disco().add_ins == [package.dll(uno.machine.nuget)]


def test_the_same_add_in_of_many_projects_is_given_once(uno: WorkspaceBuilder) -> None:
    package = direct_add_in("Acme.Tool")
    for name in ("One", "Two", "Three"):
        uno.project(f"{name}/{name}.csproj", [package])
    uno.solution("App.slnx")

    assert uno.machine.disco().add_ins == [package.dll(uno.machine.nuget)]


# --- a restore that is missing, failed or old ----------------------------------------------------------------------


def test_a_project_that_was_never_restored_is_a_warning_and_the_sdk_list_counts(workspace: WorkspaceBuilder) -> None:
    workspace.machine.install_dotnet()
    workspace.uno_6_5().project("src/App/App.csproj", [direct_add_in("Acme.Tool")], restored=False)
    workspace.project("src/Good/Good.csproj", [direct_add_in("Acme.Good")]).solution("App.slnx")

    result = workspace.machine.disco()

    issue = result.issue("RestoreMissing")
    assert (result.exit_code, issue["severity"]) == (0, "Warning")
    assert str(workspace.root / "src/App/App.csproj") in issue["message"]
    assert "dotnet restore" in issue["remediation"]
    assert len(result.add_ins) == 3


@pytest.mark.parametrize("files", [ALL_FILES, ("g", "cache"), ("assets", "cache")], ids="+".join)
def test_a_failed_restore_is_a_warning_and_its_packages_count(uno: WorkspaceBuilder, files: tuple[str, ...]) -> None:
    package = direct_add_in("Acme.Tool")
    missing = [library("Acme.DoesNotExist")]
    uno.project("App/App.csproj", [package], missing=missing, restore_files=files).solution("App.slnx")

    result = uno.machine.disco()

    issue = result.issue("RestoreFailed")
    assert issue["severity"] == "Warning"
    assert str(uno.root / "App/App.csproj") in issue["message"]
    assert result.add_ins == [package.dll(uno.machine.nuget)]


def test_a_reference_added_after_the_restore_is_a_warning_and_the_old_restore_counts(uno: WorkspaceBuilder) -> None:
    old, new = direct_add_in("Acme.Old"), direct_add_in("Acme.New")
    uno.project("App/App.csproj", [old]).edit_project("App/App.csproj", [old, new]).solution("App.slnx")

    result = uno.machine.disco()

    issue = result.issue("RestoreStale")
    assert issue["severity"] == "Warning"
    assert str(uno.root / "App/App.csproj") in issue["message"]
    assert "Acme.New" in issue["message"], "the warning says what the old restore hides"
    assert result.add_ins == [old.dll(uno.machine.nuget)]


@pytest.mark.parametrize(
    ("version", "framework"), [("1.1.0", "net9.0"), ("1.0.0", "net10.0")], ids=["version", "framework"]
)
def test_a_project_changed_after_the_restore_is_a_warning(uno: WorkspaceBuilder, version: str, framework: str) -> None:
    uno.project("App/App.csproj", [direct_add_in("Acme.Tool", "1.0.0")], frameworks=["net9.0"])
    uno.edit_project("App/App.csproj", [direct_add_in("Acme.Tool", version)], [framework]).solution("App.slnx")

    assert uno.machine.disco().issue("RestoreStale")


def test_a_restore_that_fits_its_project_is_not_worth_a_word(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj", [direct_add_in("Acme.Tool"), library("Acme.Plain")])
    uno.project("Multi/Multi.csproj", [direct_add_in("Acme.Tool")], frameworks=["net9.0", "net10.0"]).solution(
        "App.slnx"
    )

    assert uno.machine.disco().json["issues"] == []


# --- what the files of a package may say ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("include", "found"),
    [
        (
            "$(MSBuildThisFileDirectory)../tools/devserver/A.dll;$(MSBuildThisFileDirectory)../tools/devserver/B.dll",
            "AB",
        ),
        (r"$(MSBuildThisFileDirectory)..\tools\devserver\A.dll", "A"),
        ("$(MSBuildThisFileDirectory)../tools/devserver/*.dll", "AB"),
    ],
    ids=["two paths", "backslashes", "wildcard"],
)
@RESTORE_FILES
def test_includes_mean_what_msbuild_does(
    uno: WorkspaceBuilder, files: tuple[str, ...], include: str, found: str
) -> None:
    package = library("Acme.Tool").with_files(
        {
            "buildTransitive/Acme.Tool.targets": targets(include),
            "tools/devserver/A.dll": b"MZ",
            "tools/devserver/B.dll": b"MZ",
        }
    )
    uno.project("App/App.csproj", [package], restore_files=files).solution("App.slnx")

    assert [Path(path).stem for path in uno.machine.disco().add_ins] == list(found)


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        (
            {
                "version": 1,
                "addins": [{"entryPoint": "tools/devserver/A.dll"}, {"entryPoint": "tools/devserver/B.dll"}],
            },
            "AB",
        ),
        ({"version": 1, "future": [], "addins": [{"entryPoint": "tools/devserver/A.dll", "future": 1}]}, "A"),
        ({"version": 1, "addins": [{"entryPoint": "tools/devserver/A.dll", "minHostVersion": "6.5.0"}]}, "A"),
        ({"version": 1, "addins": [{"entryPoint": "tools/devserver/A.dll", "minHostVersion": "7.0.0"}]}, ""),
        ({"version": 1, "addins": []}, ""),
        ({"version": 2, "addins": [{"entryPoint": "tools/devserver/A.dll"}]}, "T"),
        ({"version": 1, "addins": [{"entryPoint": "../../acme.other/1.0.0/tools/devserver/Acme.Other.dll"}]}, ""),
        ({"version": 1, "addins": [{"entryPoint": "/etc/hostname"}]}, ""),
    ],
    ids=["several", "unknown fields", "host new enough", "host too old", "none", "version 2", "leaves it", "absolute"],
)
def test_a_manifest_decides_unless_its_version_is_unknown(uno: WorkspaceBuilder, manifest: object, found: str) -> None:
    text = targets("$(MSBuildThisFileDirectory)../tools/devserver/T.dll")
    dlls = {f"tools/devserver/{name}.dll": b"MZ" for name in "ABT"}
    package = library("Acme.Tool").with_files(
        {"devserver-addin.json": json.dumps(manifest), "buildTransitive/Acme.Tool.targets": text, **dlls}
    )
    uno.package(direct_add_in("Acme.Other")).project("App/App.csproj", [package]).solution("App.slnx")

    result = uno.machine.disco()

    assert [Path(path).stem for path in result.add_ins] == list(found)
    refused = [code for code in result.issue_codes if code.startswith("AddIn") and code != "AddInDiscoveryFallback"]
    expected = {"7.0.0": "AddInHostTooOld", '"version": 2': "AddInManifestUnsupported"}
    expected |= {"../../": "AddInEntryPointRefused", "/etc/": "AddInEntryPointRefused"}
    assert refused == [code for part, code in expected.items() if part in json.dumps(manifest)]


def test_a_manifest_link_that_leads_out_of_the_package_is_refused(uno: WorkspaceBuilder) -> None:
    package = manifest_add_in("Acme.Tool").without_files("tools/devserver/Acme.Tool.dll")
    uno.project("App/App.csproj", [package.with_files({"tools/readme.txt": "x"})]).solution("App.slnx")
    outside = write(uno.machine.root / "outside.dll", b"MZ")
    link = uno.machine.nuget / package.path / "tools" / "devserver" / "Acme.Tool.dll"
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)

    result = uno.machine.disco()

    assert result.add_ins == []
    assert "AddInEntryPointRefused" in result.issue_codes


def test_the_add_ins_come_in_the_order_of_the_sdk_list_and_then_of_the_projects(workspace: WorkspaceBuilder) -> None:
    groups = (CORE, APP_MCP, SETTINGS)
    workspace.uno_sdk(groups=groups).package(host(), settings(), app_mcp())
    workspace.project("Z/Z.csproj", [direct_add_in("Acme.Z")])
    workspace.project("A/A.csproj", [direct_add_in("Acme.A")]).solution("App.slnx")

    names = [Path(path).stem for path in workspace.machine.disco().add_ins]

    assert names == ["Uno.UI.App.Mcp.Server", "Uno.Settings.DevServer", "Acme.Z", "Acme.A"]


# --- what a review found -------------------------------------------------------------------------------------------


def test_a_referenced_package_with_only_a_manifest_is_found(uno: WorkspaceBuilder) -> None:
    """Without a `tools` folder and build files, restore's generated files do not speak of it."""
    package = manifest_add_in("Acme.Bare", entries=[{"entryPoint": "addin/Acme.Bare.dll"}])
    package = package.without_files("tools/devserver/Acme.Bare.dll").with_files({"addin/Acme.Bare.dll": "MZ"})
    uno.project("App/App.csproj", [package]).solution("App.slnx")

    result = uno.machine.disco()

    assert result.add_ins == [str(uno.machine.nuget / package.path / "addin" / "Acme.Bare.dll")]


def test_an_add_in_of_bare_libraries_is_found_and_its_package_not_accused(uno: WorkspaceBuilder) -> None:
    package = direct_add_in("Acme.Tool")
    uno.project("App/App.csproj", [package], restore_files=("assets",)).solution("App.slnx")
    assets = uno.root / "App" / "obj" / "project.assets.json"
    content = json.loads(assets.read_text("utf-8"))
    write(assets, json.dumps({"version": 3, "libraries": content["libraries"]}, indent=2))

    result = uno.machine.disco()

    assert result.add_ins == [package.dll(uno.machine.nuget)]
    assert "AddInEntryPointUnknown" not in [issue["code"] for issue in result.json["issues"]]


def test_assets_at_the_root_that_name_no_project_are_evaluated(uno: WorkspaceBuilder) -> None:
    package = direct_add_in("Acme.Tool")
    uno.project("App/App.csproj", [package]).solution("App.slnx")
    assets = uno.root / "App" / "obj" / "project.assets.json"
    content = json.loads(assets.read_text("utf-8"))
    del content["project"]
    write(uno.root / "obj" / "project.assets.json", json.dumps(content, indent=2))
    for path in (uno.root / "App" / "obj").iterdir():
        path.unlink()

    assert uno.machine.disco().add_ins == [package.dll(uno.machine.nuget)]


@pytest.mark.parametrize(
    "include", ["$(OnlyABuildKnows)/Acme.Tool.dll", "$([System.IO.File]::ReadAllText('x'))/Acme.Tool.dll"]
)
def test_a_path_that_only_a_build_knows_is_reported_with_its_expression(uno: WorkspaceBuilder, include: str) -> None:
    package = direct_add_in("Acme.Tool").with_files({"buildTransitive/Acme.Tool.targets": targets(include)})
    uno.project("App/App.csproj", [package]).solution("App.slnx")

    result = uno.machine.disco()

    assert result.add_ins == []
    assert include.partition("/")[0] in result.issue("AddInConditionUnknown")["message"]


# --- one answer, wherever and whenever it is asked -----------------------------------------------------------------


def _moved(uno: WorkspaceBuilder, recorded: str, project: str = "/home/other/src/App/App.csproj") -> None:
    """Restore files as they were made on another machine, with its package folder and project folder."""
    here = str(uno.root / "App" / "App.csproj")
    for file in (uno.root / "App" / "obj").iterdir():
        text = file.read_text("utf-8")
        for old, new in ((here, project), (str(uno.machine.nuget), recorded)):
            as_text = json.dumps if file.suffix in (".json", ".cache") else '"{}"'.format
            text = text.replace(as_text(old)[1:-1], as_text(new)[1:-1])
        file.write_text(text, "utf-8")


@RESTORE_FILES
@pytest.mark.parametrize("recorded", ["/home/other/.nuget/packages", "C:\\Users\\Other\\.nuget\\packages"])
def test_packages_are_found_where_they_are_if_restore_names_folders_of_another_machine(
    uno: WorkspaceBuilder, files: tuple[str, ...], recorded: str
) -> None:
    packages = [direct_add_in("Acme.Tool"), manifest_add_in("Acme.Manifest")]
    uno.project("App/App.csproj", packages, restore_files=files).solution("App.slnx")
    _moved(uno, recorded)

    result = uno.machine.disco()

    assert sorted(result.add_ins) == sorted(package.dll(uno.machine.nuget) for package in packages)
    assert str(uno.machine.nuget) in result.issue("RestoreElsewhere")["message"]
    assert not result.issues("AddInPackageNotCached")
    assert not [place for place in result.json["nuGetCacheLocations"] if "other" in place.lower()]


@pytest.mark.skipif(not WINDOWS, reason="elsewhere these are two folders")
@RESTORE_FILES
def test_on_windows_a_restore_may_spell_the_package_folder_in_other_letters(
    uno: WorkspaceBuilder, files: tuple[str, ...]
) -> None:
    packages = [direct_add_in("Acme.Tool"), manifest_add_in("Acme.Manifest")]
    uno.project("App/App.csproj", packages, restore_files=files).solution("App.slnx")
    expected = uno.machine.disco()
    _moved(uno, str(uno.machine.nuget).upper(), str(uno.root / "App" / "App.csproj").lower())

    result = uno.machine.disco()

    assert [path.lower() for path in result.add_ins] == [path.lower() for path in expected.add_ins]
    names = [[entry["packageName"], entry["packageVersion"]] for entry in result.json["addIns"]]
    assert names == [[entry["packageName"], entry["packageVersion"]] for entry in expected.json["addIns"]]
    assert result.issue_codes == expected.issue_codes


def test_a_windows_restore_with_the_users_profile_is_read_by_its_imports(uno: WorkspaceBuilder) -> None:
    package = direct_add_in("Acme.Tool")
    uno.project("App/App.csproj", [package], restore_files=("g",)).solution("App.slnx")
    for file in (uno.root / "App" / "obj").iterdir():
        text = file.read_text("utf-8").replace(str(uno.machine.nuget), "$(UserProfile)\\.nuget\\packages\\")
        text = text.replace("$(NuGetPackageRoot)/", "$(NuGetPackageRoot)").replace(
            "acme.tool/1.0.0/", "acme.tool\\1.0.0\\"
        )
        file.write_text(text.replace("\n", "\r\n"), "utf-8")

    assert uno.machine.disco().add_ins == [package.dll(uno.machine.nuget)]


@pytest.mark.skipif(sys.platform != "linux", reason="the file systems of other systems ignore case")
def test_a_package_folder_in_another_case_is_no_restore_of_another_machine(uno: WorkspaceBuilder) -> None:
    package = direct_add_in("Acme.Tool")
    uno.project("App/App.csproj", [package]).solution("App.slnx")
    (uno.machine.nuget / "acme.tool").rename(uno.machine.nuget / "Acme.Tool")

    result = uno.machine.disco()

    assert result.add_ins == [package.dll(uno.machine.nuget).replace("acme.tool", "Acme.Tool")]
    assert not result.issues("RestoreElsewhere")


@RESTORE_FILES
def test_a_package_that_lies_in_no_folder_is_missing_from_all_folders_that_are_named(
    uno: WorkspaceBuilder, files: tuple[str, ...]
) -> None:
    package = direct_add_in("Acme.Tool")
    uno.project("App/App.csproj", [package], restore_files=files).solution("App.slnx")
    _moved(uno, "/home/other/.nuget/packages")
    Path(package.dll(uno.machine.nuget)).parents[2].rename(uno.machine.root / "away")

    message = uno.machine.disco().issue("AddInPackageNotCached")["message"]

    assert "Acme.Tool 1.0.0" in message
    assert str(uno.machine.nuget) in message


def test_the_order_of_add_ins_and_the_last_good_answer_do_not_depend_on_hash_order(uno: WorkspaceBuilder) -> None:
    packages = [manifest_add_in(f"Acme.Tool{number}") for number in range(12)]
    uno.project("App/App.csproj", packages, restore_files=("assets",)).solution("App.slnx")
    kept = uno.machine.state / "addins"

    runs = []
    for seed in range(4):
        result = uno.machine.disco(env={"PYTHONHASHSEED": str(seed)})
        runs.append((result.add_ins, [file.read_bytes() for file in kept.iterdir()]))

    assert len(runs[0][0]) == 12
    assert all(run == runs[0] for run in runs)


@RESTORE_FILES
def test_two_versions_of_one_add_in_give_the_host_the_one_of_the_start_up_project_and_a_warning(
    uno: WorkspaceBuilder, files: tuple[str, ...]
) -> None:
    one, two = direct_add_in("Acme.Tool", "1.0.0"), direct_add_in("Acme.Tool", "2.0.0")
    uno.project("Lib/Lib.csproj", [two], restore_files=files)
    uno.project("App/App.csproj", [one], restore_files=files).solution("App.slnx")
    library_project = uno.root / "Lib" / "Lib.csproj"
    write(library_project, library_project.read_text("utf-8").replace("Exe", "Library"))

    assert uno.machine.run("disco", "--addins-only").add_ins == [one.dll(uno.machine.nuget)]
    result = uno.machine.disco()

    assert {entry["packageVersion"]: entry["replacedBy"] for entry in result.json["addIns"]} == {
        "1.0.0": None,
        "2.0.0": "1.0.0",
    }
    message = result.issue("AddInVersionsDiffer")["message"]
    assert "1.0.0" in message
    assert "2.0.0" in message


def test_of_two_versions_that_the_start_up_project_does_not_use_the_highest_counts(uno: WorkspaceBuilder) -> None:
    old, new = direct_add_in("Acme.Tool", "9.0.0"), direct_add_in("Acme.Tool", "10.0.0")
    uno.project("App/App.csproj", []).project("One/One.csproj", [new]).project("Two/Two.csproj", [old])
    uno.solution("App.slnx")

    assert uno.machine.run("disco", "--addins-only").add_ins == [new.dll(uno.machine.nuget)]


@RESTORE_FILES
def test_a_package_restored_without_its_build_files_is_named_as_that(
    uno: WorkspaceBuilder, files: tuple[str, ...]
) -> None:
    package = direct_add_in("Acme.Tool")
    excluded = package.without_files("buildTransitive/Acme.Tool.targets")  # what restore sees of it
    uno.project("App/App.csproj", [excluded], restore_files=files).package(package).solution("App.slnx")

    result = uno.machine.disco()

    assert result.add_ins == []
    assert "Acme.Tool.targets" in result.issue("AddInBuildFilesExcluded")["message"]
    assert not result.issues("AddInEntryPointUnknown")


@RESTORE_FILES
@pytest.mark.parametrize(
    ("condition", "found"),
    [("'$(OutputType)$(Configuration)$(AcmeMode)' == ''", True), ("'$(AcmeMode)' == 'on'", False)],
)
def test_props_of_packages_do_not_see_what_the_project_sets_after_them(
    uno: WorkspaceBuilder, files: tuple[str, ...], condition: str, found: bool
) -> None:
    dll = "$(MSBuildThisFileDirectory)../tools/devserver/Acme.Tool.dll"
    props = f'<Project><PropertyGroup><AcmeTool Condition="{condition}">{dll}</AcmeTool></PropertyGroup></Project>'
    package = direct_add_in("Acme.Tool").with_files(
        {"buildTransitive/Acme.Tool.props": props, "buildTransitive/Acme.Tool.targets": targets("$(AcmeTool)")}
    )
    uno.project("App/App.csproj", [package], restore_files=files).solution("App.slnx")
    project = uno.root / "App" / "App.csproj"
    write(project, project.read_text("utf-8").replace("<OutputType>", "<AcmeMode>on</AcmeMode><OutputType>"))

    assert uno.machine.disco().add_ins == ([package.dll(uno.machine.nuget)] if found else [])


def test_a_property_of_the_packages_own_name_that_nothing_sets_is_empty(uno: WorkspaceBuilder) -> None:
    text = targets("$(MSBuildThisFileDirectory)../tools/devserver/Acme.Tool.dll", item_condition="{}")
    names = ("AcmeFeature", "_AcmeFeature", "ACME_Feature", "Acmeology", "SomeSdkProperty")
    unknown = {}
    for name in names:
        package = direct_add_in("Acme.Tool").with_files(
            {"buildTransitive/Acme.Tool.targets": text.replace("{}", f"'$({name})' == 'on'")}
        )
        uno.project("App/App.csproj", [package]).solution("App.slnx", ["App/App.csproj"])
        unknown[name] = bool(uno.machine.disco().add_ins)

    assert [name for name in names if unknown[name]] == ["Acmeology", "SomeSdkProperty"]


def test_packages_are_found_in_the_home_of_the_dotnet_cli(uno: WorkspaceBuilder) -> None:
    home = uno.machine.root / "cli-home"
    cache = home / ".nuget" / "packages"
    (home / ".nuget").mkdir(parents=True)
    package = direct_add_in("Acme.Tool")
    uno.project("App/App.csproj", [package], restore_files=("assets",)).solution("App.slnx")
    _moved(uno, "/nowhere")
    uno.machine.nuget.rename(cache)
    uno.machine.environment = {"DOTNET_CLI_HOME": str(home)}

    result = uno.machine.disco()

    assert result.add_ins == [package.dll(cache)]
    assert result.json["nuGetCacheLocations"][0] == str(cache)
