"""What NuGet and packages leave: restore files, manifests, versions, projects."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from functools import cache
from pathlib import Path

from support.golden import GOLDEN
from uno_devserver.cli import addin
from uno_devserver.discovery import msbuild_query, nuget_version
from uno_devserver.discovery.assets import read_assets
from uno_devserver.discovery.manifest import read_manifest
from uno_devserver.discovery.nuget import PackageFolders, package_folders
from uno_devserver.discovery.packages import read_sdk_packages
from uno_devserver.discovery.project_info import framework_properties, read_project
from uno_devserver.discovery.restore import read_generated, restore_issues, select_imports
from uno_devserver.issues import UserError
from uno_devserver.msbuild import evaluation, functions  # noqa: F401  # to be instrumented
from uno_devserver.msbuild.project_files import ProjectFileCache
from uno_devserver.system import jsonc
from uno_devserver.system.files import FileProblem, decode
from uno_devserver.system.folders import Folders

from ..documents import BUILT, RAW, WORDS, document, raw
from ..pieces import Pieces
from ..scratch import folder, put
from ..target import Target, told


@cache
def restored(ending: str) -> tuple[bytes, ...]:
    """Files that restore wrote, as they were recorded."""
    found: dict[str, None] = {}
    for record in sorted((GOLDEN / "restore").glob("*.json")):
        files = json.loads(record.read_text("utf-8"))["files"]
        found |= {text: None for name, text in files.items() if name.endswith(ending) and isinstance(text, str)}
    return tuple(text.encode() for text in found if len(text) < 6000)


def check_generated(data: bytes) -> None:
    """Imports and properties, or None where the form is not NuGet's."""
    one, _, other = decode(data).partition("</Project>")
    lines = read_generated((one + "</Project>", other) if other.strip() else (decode(data),))
    if lines is None:
        return
    for framework in (None, "net10.0", ""):
        imports, properties = select_imports(lines, framework)
        assert all(isinstance(path, str) for path in imports)
        assert all(name.startswith(("NuGet", "Pkg")) for name in properties)


def check_assets(data: bytes) -> None:
    """What the quick search finds is what the careful reader finds; or a problem that is documented."""
    path = put("restore/project.assets.json", data)
    try:
        quick = read_assets(path)
    except (FileProblem, jsonc.JsonProblem):
        return
    assert all(isinstance(name, str) and isinstance(version, str) for name, version in quick.packages)
    for found in (quick.with_manifest, quick.with_tools):
        assert all(len(package) == 2 for package in found)


def check_addin_manifest(data: bytes) -> None:
    """Entry points inside the package, or a sentence that names the file."""
    package = folder() / "package"
    put("package/devserver-addin.json", document(data, MANIFEST_NAMES, MANIFEST_VALUES))
    manifest = read_manifest(str(package), "Acme", "6.0")
    for path in manifest.entry_points or ():
        assert Path(os.path.normpath(path)).is_relative_to(package)
        os.path.isfile(path)
    assert all(str(package) in issue.message for issue in manifest.issues)


MANIFEST_NAMES = ("version", "addins", "addIns", "entryPoint", "minHostVersion", "ENTRYPOINT")
MANIFEST_VALUES = (
    '"tools/a.dll"',
    '"../a.dll"',
    '[{"entryPoint": "a.dll"}]',
    '"6.0"',
    '"99.0"',
    '"..\\\\x"',
    '"a/\\u0000"',
)


def check_packages(data: bytes) -> None:
    """packages.json: packages with versions, or an issue; versions have an order, and no folder leads elsewhere."""
    names = ("version", "packages", "versionOverride", "net10.0", "net9.0")
    put(
        "sdk/targets/netstandard2.0/packages.json",
        document(data, names, ('["A.B"]', '"1.2.3-dev.4"', '[{"version": "1.0"}]')),
    )
    found = read_sdk_packages(str(folder() / "sdk"))
    folders = PackageFolders([str(folder())])
    for package in found.packages:
        path = folders.find(package.name, package.version)
        assert path is None or Path(path).is_relative_to(folder())
        for spelling in nuget_version.folder_spellings(package.version):
            assert os.path.basename(spelling) == spelling


def check_version(data: bytes) -> None:
    """Two versions have one order; what is written is read as the same."""
    one, _, other = data.decode("utf-8", "replace").partition("|")
    first, second = nuget_version.parse_version(one), nuget_version.parse_version(other)
    nuget_version.at_least(one, other)
    if first is not None and second is not None:
        assert (first < second) != (second <= first)
    if first is not None:
        assert nuget_version.parse_version(str(first)) == first


def check_nuget_config(data: bytes) -> None:
    """Package folders by absolute paths, or an issue."""
    path = put("nuget/nuget.config", data)
    home = str(folder() / "home")
    found = package_folders(os.path.dirname(path), {}, Folders(home, home, home, home))
    assert all(os.path.isabs(location) for location in found.locations)
    found.find("Uno.Sdk", "1.0")


def check_dump(data: bytes) -> None:
    """What MSBuild wrote in UTF-16: entries without blanks around, each once."""
    entries = msbuild_query._read_dump(put("msbuild/dump.txt", data))
    assert all(entry and entry == entry.strip() for entry in entries)
    assert len({entry.lower() for entry in entries}) == len(entries)


def check_project(data: bytes) -> None:
    """A project file: never an exception, and what restore recorded of it is compared without one."""
    first, _, record = data.partition(b"\xff\xfe\xff")
    path = put("project/App.csproj", first)
    put("project/obj/project.nuget.cache", record)
    project = read_project(path, ProjectFileCache(), {})
    framework_properties(project.frameworks[0] if project.frameworks else None)
    assert all(issue.message for issue in restore_issues(project))


def check_nupkg(data: bytes) -> None:
    """What `addin check` says of a package; nothing is written outside of its folder, nor more than is read."""
    package, checked = folder() / "a.nupkg", folder() / "nupkg" / "laid-out"
    package.write_bytes(_zip(Pieces(data[1:])) if data[:1] == BUILT else data[1:])
    shutil.rmtree(checked.parent, ignore_errors=True)
    checked.mkdir(parents=True)
    try:
        addin._lay_out(str(package), str(checked))
    except UserError as error:
        told(error, str(package))
    assert [path.name for path in checked.parent.iterdir()] == ["laid-out"]
    found = addin._result(str(package), addin._Check(str(checked), "Acme"))
    json.dumps(found.data)


def _zip(pieces: Pieces) -> bytes:
    files = {
        "".join(pieces.choice(NUPKG_NAMES) for _ in range(1 + pieces.number(3))): pieces.choice(NUPKG_CONTENTS)
        for _ in range(1 + pieces.number(5))
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in files.items():
            package.writestr(zipfile.ZipInfo(name), text)
    return content.getvalue()


NUPKG_NAMES = (
    "devserver-addin.json", "Acme.nuspec", "buildTransitive/Acme.targets", "build/net8.0/Acme.props", "tools/a.dll",
    "../", "..%2f", "%5C..%5C", "/", "a/" * 30, "x", "%00", "\\", ".", "é", "%ff",
)  # fmt: skip
NUPKG_CONTENTS = (
    b"", b"MZ", b"<x", b'{"version": 1, "addins": [{"entryPoint": "tools/a.dll"}]}',
    b"<package><metadata><id>Acme</id><version>1.0</version></metadata></package>",
    b'<Project><ItemGroup><UnoRemoteControlAddIns Include="..\\tools\\a.dll" /></ItemGroup></Project>',
)  # fmt: skip


def project_seeds() -> list[bytes]:
    cache_file = restored("project.nuget.cache")[:4]
    return [
        text + b"\xff\xfe\xff" + cache_file[index % len(cache_file)]
        for index, text in enumerate(restored(".csproj")[:12])
    ]


GENERATED_WORDS = (
    "<PropertyGroup Condition=\" '$(ExcludeRestorePackageImports)' != 'true' \">",
    "</PropertyGroup>",
    '<Import Project="',
    "$(NuGetPackageRoot)",
    "</Project>",
)
ASSETS_WORDS = (
    '\n  "targets": {', '\n  "libraries": {', '\n        "build": {', '\n      "', '": {', "\n        }",
    "devserver-addin.json", "tools/devserver/",
)  # fmt: skip
PROJECT_WORDS = (
    "<TargetFrameworks>", "net10.0;net9.0-ios", "<PackageReference Include=", "Version=", '"success": false', "Sdk=",
)  # fmt: skip
MANIFEST_SEED = b'{"version": 1, "addins": [{"entryPoint": "tools/a.dll", "minHostVersion": "6.0"}]}'
PACKAGES_SEED = b'[{"group": "x", "version": "1.2.3", "packages": ["A.B"], "versionOverride": {"net10.0": "2.0"}}]'
CONFIG_SEED = b'<configuration><config><add key="globalPackagesFolder" value="%A%\\x" /></config></configuration>'

TARGETS = (
    Target(
        "generated",
        "imports and properties, or not NuGet's form",
        check_generated,
        lambda: restored(".g.props")[:10] + restored(".g.targets")[:10],
        GENERATED_WORDS,
        6000,
    ),
    Target(
        "assets",
        "packages and files, or a documented problem",
        check_assets,
        lambda: restored("project.assets.json")[:12],
        ASSETS_WORDS,
        6000,
    ),
    Target(
        "addin-manifest",
        "entry points inside the package, or a sentence",
        check_addin_manifest,
        lambda: raw(MANIFEST_SEED),
        (*WORDS, *MANIFEST_VALUES),
    ),
    Target(
        "sdk-packages", "packages, and no version leads elsewhere", check_packages, lambda: raw(PACKAGES_SEED), WORDS
    ),
    Target(
        "versions",
        "one order, and the same when it is read again",
        check_version,
        lambda: [b"1.2.3-dev.4+x|1.2", b"1.0.0.0|1"],
        (".", "-", "+", "|", "0", "99999999999"),
        200,
    ),
    Target(
        "nuget-config",
        "absolute folders, or an issue",
        check_nuget_config,
        lambda: [CONFIG_SEED],
        ("<add ", "key=", "value=", '"', "<config>", "</config>", "%", "\\", "globalPackagesFolder"),
    ),
    Target(
        "msbuild-dump",
        "entries without blanks around, each once",
        check_dump,
        lambda: ["/a/b.dll;/c d.dll\r\n".encode("utf-16"), b"", "é;É;;\n".encode("utf-16-le")],
        (b";\0", b"\r\0\n\0", b"\xff\xfe", b"\0\xd8"),
        400,
    ),
    Target(
        "projects",
        "never an exception, also about what restore recorded",
        check_project,
        project_seeds,
        PROJECT_WORDS,
        4000,
    ),
    Target(
        "nupkg",
        "what is wrong is said, and nothing is written outside of its folder",
        check_nupkg,
        lambda: [
            *(BUILT + bytes(range(start, start + 20)) for start in range(0, 40, 5)),
            BUILT + bytes([3, 0, 0, 3, 0, 1, 4, 0, 4, 1, 0, 2, 5]),
            RAW + _zip(Pieces(bytes([3, 0, 0, 3, 0, 1, 4, 0, 4, 1, 0, 2, 5]))),
        ],
        ("PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "../", "%2f", "\\"),
    ),
)
