"""The client process ends with all that it has started, on every system."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from support.waiting import until
from uno_devserver.hotreload.client_app import ClientApp
from uno_devserver.system.processes import is_alive
from uno_devserver.workspace.config import ClientCommand


async def test_stopping_it_ends_what_it_has_started_too(tmp_path: Path) -> None:
    child = (
        "import os, time; open('child', 'w').write(str(os.getpid())); print('is ready', flush=True); time.sleep(600)"
    )
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-ISc', {child!r}])"
    command = ClientCommand(sys.executable, ("-ISc", code), ready_pattern="is ready$")
    client = ClientApp(command, str(tmp_path), os.environ, str(tmp_path / "state"), lambda: None)
    assert await client.start()
    pid = int((tmp_path / "child").read_text())

    await client.stop()

    await until(lambda: not is_alive(pid))
