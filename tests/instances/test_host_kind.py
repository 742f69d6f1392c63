"""Which Host a command line starts, and which a name means."""

from __future__ import annotations

import pytest

from uno_devserver.instances.host_kind import HostKind


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (
            ("/usr/bin/dotnet", "/nuget/tools/rc/host/net10.0/Uno.UI.RemoteControl.Host.dll", "--httpPort"),
            HostKind.DOTNET,
        ),
        (("C:\\nuget\\Uno.UI.RemoteControl.Host.exe", "--httpPort", "1"), HostKind.DOTNET),
        (("/usr/bin/python3", "-P", "-m", "uno_devserver.host", "--httpPort", "1"), HostKind.BUNDLED),
        (("/usr/bin/python3", "/home/d/.local/bin/uno-devserver", "host", "--httpPort", "1"), HostKind.BUNDLED),
        (("/usr/bin/python3", "/home/d/.local/bin/uno.devserver", "host", "--httpPort", "1"), HostKind.BUNDLED),
        (("/usr/bin/python3", "-m", "uno_devserver", "host"), HostKind.BUNDLED),
        (("/usr/bin/python3", "-m", "uno_devserver", "start"), None),
        (("/opt/my-host", "--solution", "/src/Uno.UI.RemoteControl.Host/x", "host"), None),
        ((), None),
    ],
)
def test_the_command_line_tells_the_kind_of_host(arguments: tuple[str, ...], kind: HostKind | None) -> None:
    assert HostKind.of_command_line(arguments) is kind


@pytest.mark.parametrize(
    ("text", "kind"), [("bundled", HostKind.BUNDLED), ("DotNet", HostKind.DOTNET), ("/a/host", None), (7, None)]
)
def test_a_name_means_a_kind_in_any_case(text: object, kind: HostKind | None) -> None:
    assert HostKind.named(text) is kind
