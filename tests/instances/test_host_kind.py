"""Which Host a command line starts."""

from __future__ import annotations

import pytest

from uno_devserver.instances.host_kind import kind_by_command_line


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("/usr/bin/dotnet", "/nuget/tools/rc/host/net10.0/Uno.UI.RemoteControl.Host.dll", "--httpPort"), "dotnet"),
        (("C:\\nuget\\Uno.UI.RemoteControl.Host.exe", "--httpPort", "1"), "dotnet"),
        (("/usr/bin/python3", "-P", "-m", "uno_devserver.host", "--httpPort", "1"), "bundled"),
        (("/usr/bin/python3", "/home/d/.local/bin/uno-devserver", "host", "--httpPort", "1"), "bundled"),
        (("/usr/bin/python3", "/home/d/.local/bin/uno.devserver", "host", "--httpPort", "1"), "bundled"),
        (("/usr/bin/python3", "-m", "uno_devserver", "host"), "bundled"),
        (("/usr/bin/python3", "-m", "uno_devserver", "start"), None),
        (("/opt/my-host", "--solution", "/src/Uno.UI.RemoteControl.Host/x", "host"), None),
        ((), None),
    ],
)
def test_the_command_line_tells_the_kind_of_host(arguments: tuple[str, ...], kind: str | None) -> None:
    assert kind_by_command_line(arguments) == kind
