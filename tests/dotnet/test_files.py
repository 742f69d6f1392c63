"""Files and texts that we write, read by the .NET classes that other programs read them with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dotnet.sdk import PATIENCE, Client, Sdk
from support.bundled import BundledHost
from support.files import write
from support.golden import GOLDEN
from support.machine import Machine
from support.workspace import WorkspaceBuilder, sln
from uno_devserver.host.ide.json_rpc import newtonsoft_json
from uno_devserver.instances.csproj_user import write_port
from uno_devserver.instances.registry import write_sidecar
from uno_devserver.system.dotnet_formats import quoted

PORT = 53821
SHAPES = {
    path.name.removesuffix(".before.xml"): path.read_bytes()
    for path in (GOLDEN / "bytes" / "csproj-user").glob("*.before.xml")
}
NOT_FOR_MSBUILD = "f-cdata-entities-crlf-in-value"  # its condition is XML's text, and no condition
SAYS_ITS_PORT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>netcoreapp3.1</TargetFramework></PropertyGroup>
  <Target Name="Say">
    <Message Importance="High" Text="$(MSBuildProjectName) has $(UnoRemoteControlPort) of $(UnoPlatformIDE)." />
  </Target>
</Project>
"""


# The registry


def test_dotnet_finds_the_bundled_host_by_an_entry_in_its_own_bytes(
    net_workspace: WorkspaceBuilder, client: Client
) -> None:
    workspace = net_workspace.project("App/App.csproj").solution("Größe & 'more' <x> \U0001f600+.slnx")
    solution = str(workspace.root / "Größe & 'more' <x> \U0001f600+.slnx")

    with _host(workspace.machine, "--addins", ";", "--solution", solution, "--ideChannel", "chan ü") as host:
        [server] = client.ask("servers")

    assert 0 <= server.pop("Age") < PATIENCE
    assert server == {
        "ProcessId": host.process.pid,
        "ParentProcessId": 0,
        "SolutionPath": solution,
        "Port": host.port,
        "Channel": "chan ü",
        "IsUtc": True,
        "Same": True,
    }


def test_dotnet_takes_the_channel_from_the_sidecar_where_the_entry_has_none(
    net_machine: Machine, client: Client
) -> None:
    with _host(net_machine, "--addins", ";") as host:
        write_sidecar(str(host.registry), host.process.pid, ide_channel="chan ü", workspace="/a folder")
        [server] = client.ask("servers")

    assert server["Channel"] == "chan ü"


def test_every_character_is_written_as_both_serializers_write_it(client: Client) -> None:
    texts = [chr(code) for code in range(sys.maxunicode + 1) if code < 0x3000 or 0xD7F0 <= code < 0xD800]
    texts += [chr(code) for code in (0xE000, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF)]
    texts += ["", 'a\\b"c/d', "<a href='x'>&amp;+`</a>", "C:\\src\\Größe\\App.sln"]

    theirs = client.lines("quote", given=json.dumps(texts))

    assert [[quoted(text), newtonsoft_json(text)] for text in texts] == theirs


# .csproj.user


@pytest.mark.parametrize("shape", ["new", *sorted(SHAPES)])
def test_linq_to_xml_reads_the_port(tmp_path: Path, client: Client, shape: str) -> None:
    solution = _solution(tmp_path, shape)

    assert write_port(solution, PORT, str(tmp_path)).warnings == ()

    properties = client.ask("properties", str(tmp_path / shape / f"{shape}.csproj.user"))
    assert ["UnoRemoteControlPort", f"{PORT}#"] in properties


def test_msbuild_evaluates_the_port_in_every_shape_of_file(tmp_path: Path, sdk: Sdk) -> None:
    shapes = ["new", *(shape for shape in SHAPES if shape != NOT_FOR_MSBUILD)]
    solution = _solution(tmp_path, *shapes)

    assert write_port(solution, PORT, str(tmp_path)).warnings == ()

    said = sdk.run("msbuild", solution, "-nologo", "-t:Say", "-nodeReuse:false", home=tmp_path)
    ports = {line.split()[0]: line.split()[2] for line in said.splitlines() if " has " in line}
    assert ports == dict.fromkeys(shapes, f"{PORT}#")
    assert f"new has {PORT}# of cli." in said


def _host(machine: Machine, *arguments: str) -> BundledHost:
    host = BundledHost(machine.root, *arguments, environ={"TMPDIR": machine.environment["TMPDIR"]})
    assert host.data == machine.data
    return host


def _solution(root: Path, *shapes: str) -> str:
    """A project per shape, each with its .csproj.user as it was before."""
    for shape in shapes:
        write(root / shape / f"{shape}.csproj", SAYS_ITS_PORT)
        if shape in SHAPES:
            write(root / shape / f"{shape}.csproj.user", SHAPES[shape])
    return str(write(root / "All.sln", sln([f"{shape}/{shape}.csproj" for shape in shapes])))
