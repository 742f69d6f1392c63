"""The project of the guide for authors of .NET add-ins, packed by real .NET."""

from __future__ import annotations

import zipfile
from pathlib import Path

from documents.blocks import ROOT, blocks
from dotnet.sdk import Sdk
from support.files import write
from support.machine import Machine


def test_the_project_of_the_guide_packs_its_add_in_from_a_clean_folder(
    sdk: Sdk, net_machine: Machine, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "dotnet-addins.md",)
    item, project = (block.text for block in blocks("xml", pages=page))
    folder = tmp_path / "Acme.Tool"
    write(folder / "Acme.Tool.csproj", project.replace("net10.0", "netcoreapp3.1"))
    write(folder / "devserver-addin.json", blocks("json", pages=page)[0].text)
    write(folder / "buildTransitive" / "Acme.Tool.targets", item)
    write(folder / "Tool.cs", "public class Tool { }")
    write(folder / "nuget.config", "<configuration><packageSources><clear /></packageSources></configuration>")

    options = ("-nodereuse:false", "-p:UseSharedCompilation=false", "-warnaserror")
    printed = sdk.run("pack", *options, "--output", str(tmp_path), home=folder)

    package = tmp_path / "Acme.Tool.1.0.0.nupkg"
    assert package.is_file(), printed
    with zipfile.ZipFile(package) as file:
        assert {"devserver-addin.json", "buildTransitive/Acme.Tool.targets"} <= {*file.namelist()}
        assert not [name for name in file.namelist() if name.startswith("lib/")]
    result = net_machine.run("addin", "check", str(package), "--json")
    assert result.exit_code == 0, result.stdout
    assert [addin["entryPoint"] for addin in result.json["addIns"]] == ["tools/devserver/Acme.Tool.dll"]
