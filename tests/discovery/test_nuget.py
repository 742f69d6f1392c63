"""NuGet's package folders: which ones, in which order, and where one package is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.files import write
from uno_devserver.discovery.nuget import PackageFolders, package_folders, users_folders
from uno_devserver.system.folders import Folders


class Disk:
    """A workspace, a home and a machine-wide folder below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "src" / "app"
        self.home = root / "home"
        self.workspace.mkdir(parents=True)
        self.folders = Folders(
            str(self.home), str(self.home / ".config"), str(self.home / ".local"), str(root / "share")
        )

    def config(self, path: str, value: str, key: str = "globalPackagesFolder") -> Disk:
        write(self.root / path, f'<configuration><config><add key="{key}" value="{value}" /></config></configuration>')
        return self

    def find(self, **environ: str) -> PackageFolders:
        return package_folders(str(self.workspace), environ, self.folders)

    def places(self, **environ: str) -> list[str]:
        """The locations, without the two that are always there at the end."""
        found = self.find(**environ).locations
        assert found[-2:] == (str(self.home / ".nuget/packages"), str(self.root / "share/NuGet/packages"))
        return list(found[:-2])


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


# --- which folders ------------------------------------------------------------------------------------------------


def test_without_settings_the_users_folder_comes_before_the_machines(disk: Disk) -> None:
    assert disk.places() == []


def test_the_environment_comes_first(disk: Disk) -> None:
    disk.config("src/app/nuget.config", "/configured")

    assert disk.places(NUGET_PACKAGES="/from/environment/") == ["/from/environment", "/configured"]


def test_the_home_of_the_dotnet_cli_comes_before_the_users_and_is_the_users_own(disk: Disk) -> None:
    own = str(disk.root / "cli" / ".nuget" / "packages")
    environ = {"DOTNET_CLI_HOME": str(disk.root / "cli")}

    assert disk.places(**environ) == [own]
    assert own in users_folders(environ, disk.folders), "what lies there was restored by the user"


@pytest.mark.parametrize("value", ["", " ", "relative"])
def test_a_home_of_the_dotnet_cli_that_is_no_absolute_path_is_none(disk: Disk, value: str) -> None:
    assert disk.places(DOTNET_CLI_HOME=value) == []


@pytest.mark.parametrize("value", ["", " ", "\t"])
def test_a_blank_environment_is_none(disk: Disk, value: str) -> None:
    assert disk.places(NUGET_PACKAGES=value) == []


def test_a_relative_path_in_the_environment_is_below_the_workspace(disk: Disk) -> None:
    assert disk.places(NUGET_PACKAGES="../packages") == [str(disk.root / "src/packages")]


@pytest.mark.parametrize("name", ["nuget.config", "NuGet.config", "NuGet.Config"])
def test_the_three_spellings_of_the_configuration_are_found(disk: Disk, name: str) -> None:
    assert disk.config(f"src/app/{name}", "/configured").places() == ["/configured"]


def test_the_nearest_configuration_that_names_a_folder_decides(disk: Disk) -> None:
    disk.config("src/app/nuget.config", "x", key="somethingElse").config("src/nuget.config", "/near")
    disk.config("nuget.config", "/far").config("home/.nuget/NuGet/NuGet.Config", "/user")

    assert disk.places() == ["/near"]


@pytest.mark.parametrize("place", ["home/.config/NuGet/NuGet.Config", "home/.nuget/NuGet/NuGet.Config"])
def test_the_users_configuration_is_asked_last(disk: Disk, place: str) -> None:
    assert disk.config(place, "/user").places() == ["/user"]


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("packages", "{root}/src/packages"),
        (".\\packages\\cache", "{root}/src/packages/cache"),
        ("../packages/", "{root}/packages"),
        ("/absolute/./packages", "/absolute/packages"),
        ("%PLACE%/packages", "/place/packages"),
        ("%PLACE%%PLACE%", "/place/place"),
        ("/%NOWHERE%/packages", "/%NOWHERE%/packages"),
        ("/a&amp;b", "/a&b"),
        (" /blanks ", "/blanks"),
    ],
)
def test_a_configured_folder_is_relative_to_its_file_and_may_use_the_environment(
    disk: Disk, value: str, meant: str
) -> None:
    disk.config("src/nuget.config", value)

    assert disk.places(PLACE="/place") == [meant.format(root=disk.root)]


@pytest.mark.parametrize("value", ["", "  "])
def test_a_blank_folder_is_not_configured(disk: Disk, value: str) -> None:
    assert disk.config("src/app/nuget.config", value).config("src/nuget.config", "/next").places() == ["/next"]


def test_the_key_ignores_case_and_other_sections_do_not_count(disk: Disk) -> None:
    write(
        disk.workspace / "nuget.config",
        "\ufeff<?xml version='1.0'?><!-- ours --><configuration>"
        "<packageSources><add key='globalPackagesFolder' value='/wrong'/></packageSources>"
        "<config><add key='GLOBALPACKAGESFOLDER' value='/right'/></config></configuration>",
    )

    assert disk.places() == ["/right"]


@pytest.mark.parametrize(
    "content", [b"<configuration", b"", b"\0", b"{}", b"<a>" * 1_000_000], ids=["cut", "empty", "NUL", "JSON", "deep"]
)
def test_a_damaged_configuration_is_a_warning_and_the_next_one_counts(disk: Disk, content: bytes) -> None:
    path = write(disk.workspace / "nuget.config", content)
    disk.config("src/nuget.config", "/next")

    found = disk.find()

    assert found.locations[0] == "/next"
    assert [issue.code for issue in found.issues] == ["NuGetConfigInvalid"]
    assert str(path) in found.issues[0].message


@pytest.mark.timeout(5)
def test_a_configuration_that_is_no_file_is_a_warning(disk: Disk) -> None:
    os.mkfifo(disk.workspace / "nuget.config")

    assert [issue.code for issue in disk.find().issues] == ["NuGetConfigInvalid"]


def test_another_root_element_configures_nothing(disk: Disk) -> None:
    write(disk.workspace / "nuget.config", '<x><config><add key="globalPackagesFolder" value="/x"/></config></x>')

    assert disk.places() == []


# --- the list -----------------------------------------------------------------------------------------------------


def test_each_folder_is_there_once_in_its_first_place() -> None:
    folders = PackageFolders(["/a/", "/b", "/a", "/b//", "/a/../b", "/c/./"])

    assert folders.locations == ("/a", "/b", "/c")


def test_folders_that_differ_in_case_are_two_where_the_system_says_so() -> None:
    assert PackageFolders(["/a/Packages", "/a/packages"]).locations == ("/a/Packages", "/a/packages")


def test_a_restored_project_adds_its_folders_behind_ours() -> None:
    folders = PackageFolders(["/a"]).with_locations(["/b/", "/a/", "/c"])

    assert folders.locations == ("/a", "/b", "/c")


@pytest.mark.parametrize("location", ["", " ", "relative/packages", "./packages"])
def test_a_folder_that_depends_on_the_current_one_is_left_out(location: str) -> None:
    """A file of the workspace could name it; packages must not come from wherever the command runs."""
    assert PackageFolders([location, "/a"]).locations == ("/a",)


# --- one package --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "name", "version"),
    [
        ("acme.tool/1.0.0", "Acme.Tool", "1.0.0"),
        ("acme.tool/1.0.0", "ACME.TOOL", "1.0"),
        ("acme.tool/4.0.0-beta.1", "Acme.Tool", "4.0.0-Beta.1+meta"),
        ("acme.tool/1.2.3.4", "Acme.Tool", "1.2.3.4"),
        ("acme.tool/2.0.0", "Acme.Tool", "2.0.0.0"),
        ("Acme.Tool/1.0.0", "acme.tool", "1.0.0"),
        ("ACME.tool/1.0.0", "Acme.Tool", "1.0"),
        ("acme.tool/1.0.0-RC1", "Acme.Tool", "1.0.0-RC1"),
        ("žluť.kůň/1.0.0", "Žluť.Kůň", "1.0.0"),
    ],
)
def test_a_package_is_found_by_any_spelling(tmp_path: Path, folder: str, name: str, version: str) -> None:
    (tmp_path / folder).mkdir(parents=True)

    assert PackageFolders([str(tmp_path)]).find(name, version) == str(tmp_path / folder)


def test_the_first_location_that_has_it_wins(tmp_path: Path) -> None:
    for place in ("b", "c"):
        (tmp_path / place / "acme" / "1.0.0").mkdir(parents=True)

    folders = PackageFolders([str(tmp_path / place) for place in "abc"])

    assert folders.find("Acme", "1.0.0") == str(tmp_path / "b/acme/1.0.0")
    assert folders.find("Acme", "2.0.0") is None
    assert folders.find("Other", "1.0.0") is None


def test_a_file_in_the_place_of_the_folder_is_no_package(tmp_path: Path) -> None:
    write(tmp_path / "acme" / "1.0.0", "")

    assert PackageFolders([str(tmp_path)]).find("Acme", "1.0.0") is None


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("..", "secret"),
        ("../secret", "1.0.0"),
        ("acme/../..", "secret"),
        ("acme", "../../../secret"),
        ("acme", ".."),
        ("acme", "."),
        ("acme", ""),
        ("", "1.0.0"),
        ("acme\\..\\..", "secret"),
        ("/secret", "1.0.0"),
        ("acme\0", "1.0.0"),
        ("acme", "1.0.0\0"),
        ("acme", "\ud800"),
        ("\ud800", "1.0.0"),
        ("acme\n", "1.0.0"),
    ],
)
def test_a_hostile_name_or_version_leads_nowhere(tmp_path: Path, name: str, version: str) -> None:
    (tmp_path / "secret" / "1.0.0").mkdir(parents=True)
    (tmp_path / "packages" / "acme" / "1.0.0").mkdir(parents=True)

    assert PackageFolders([str(tmp_path / "packages")]).find(name, version) is None


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("aA.-_/\\1 \0~\n")), st.text(st.sampled_from("1.-+a/\\\0 ")))
def test_what_is_found_always_lies_in_a_location(tmp_path: Path, name: str, version: str) -> None:
    location = tmp_path / "packages"
    for folder in ("a/1", "a.a/1.1.1", "A/1.1"):
        (location / folder).mkdir(parents=True, exist_ok=True)

    found = PackageFolders([str(location)]).find(name, version)

    assert found is None or Path(found).resolve().parent.parent == location.resolve()


# --- whose file ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/nuget/acme/1.0.0/build/x.targets", ("acme", "1.0.0", "/nuget/acme/1.0.0")),
        ("/fallback/acme/1.0.0/x", ("acme", "1.0.0", "/fallback/acme/1.0.0")),
        ("/nuget/acme/1.0.0", None),
        ("/nuget/acme", None),
        ("/nuget", None),
        ("/nuget-other/acme/1.0.0/x", None),
        ("/src/app/Directory.Build.targets", None),
        ("relative/acme/1.0.0/x", None),
    ],
)
def test_a_file_in_a_package_folder_belongs_to_its_package(path: str, owner: tuple[str, str, str] | None) -> None:
    assert PackageFolders(["/nuget/", "/x/../fallback"]).owner(path) == owner


def test_where_case_does_not_count_a_file_belongs_to_its_package_in_any_letters() -> None:
    """On a drive of Windows, also in WSL."""
    owner = PackageFolders(["/mnt/c/NuGet"]).owner("/mnt/C/nuget/acme/1.0.0/build/Acme.targets")

    assert owner == ("acme", "1.0.0", "/mnt/c/NuGet/acme/1.0.0")
