"""What a proxy is told, and what of it others may see."""

from __future__ import annotations

import pytest

from uno_devserver.proxy.options import ProxyOptions


def test_secrets_of_a_url_are_not_shown() -> None:
    assert ProxyOptions("/ws", url="https://host/S3cret/mcp?key=secret").upstream_name == "The server at https://host/…"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("my-server", "--stdio", "x"), "my-server"),
        (("/opt/bin/my-server",), "my-server"),
        ((r"C:\tools\my server.exe",), "my server.exe"),
        (("/ws/.venv/bin/python3.12", "-u", "/ws/srv.py", "x"), "srv.py"),
        (("python", "-m", "my_server"), "my_server"),
        (("python", "-c", "import my_server; my_server.run()"), "python"),
        ((r"C:\Python\python.exe", r"D:\srv.py"), "srv.py"),
        (("node", "dist/index.js"), "dist/index.js"),
        (("npx", "-y", "@scope/server"), "@scope/server"),
        (("uvx", "my-server"), "my-server"),
        (("node", "--token", "secret1", "dist/index.js"), "dist/index.js"),
        (("npx", "--api-key=secret", "server"), "server"),
        (("…",), "…"),
        (("node",), "node"),
        (("/",), "/"),
    ],
)
def test_a_command_is_called_as_people_would_call_it(command: tuple[str, ...], name: str) -> None:
    assert ProxyOptions("/ws", command=command).upstream_name == f"The server '{name}'"
