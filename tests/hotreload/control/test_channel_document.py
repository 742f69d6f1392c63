"""The clients of docs/control-channel.md do what they say."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from support.npm import NODE
from uno_devserver.hotreload.authority import CheckResult

from .channels import SECONDS, open_channel

GUIDE = (Path(__file__).parents[3] / "docs" / "control-channel.md").read_text("utf-8")


@pytest.mark.parametrize("language", ["python", "js"])
@pytest.mark.parametrize(
    ("result", "printed", "restarts"),
    [
        (CheckResult(), "nothing to do", 0),
        (CheckResult(server_changed=True, server_rebuilt=True), "restarted", 1),
        (CheckResult(server_changed=True, server_build_error="error TS1005"), "error TS1005", 0),
    ],
    ids=["unchanged", "changed", "broken"],
)
async def test_the_clients_of_the_guide_have_the_newest_code_run(
    tmp_path: Path, language: str, result: CheckResult, printed: str, restarts: int
) -> None:
    (code,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    program = tmp_path / ("ask.py" if language == "python" else "ask.mjs")
    program.write_text(code, "utf-8")

    async with open_channel() as opened:
        opened.authority.result = result
        run = sys.executable if language == "python" else str(NODE)
        client = await asyncio.create_subprocess_exec(
            run, str(program), opened.path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await asyncio.wait_for(client.communicate(), SECONDS)

    assert printed in output.decode()
    assert opened.authority.restarts == restarts
