"""The AI clients that registration is tried with: where their programs are, and what each needs before it looks at all.

Every one comes from npm and needs no account to list its servers. Consent that a user would give in a dialogue is given
in the client's own files.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clients.proofs import connects_in_app_server, offers_tools_to_its_model
from support.npm import NODE

USER, WORKSPACE = "user", "workspace"
SERVERS = ("UnoApp", "UnoDocs")

Consent = Callable[[Path, Path], Mapping[str, str]]  # home and workspace; files below the home, and their text
Proof = Callable[[Path, Mapping[str, str]], bool]  # workspace and environment; whether it connects to UnoApp


class Kind(NamedTuple):
    id: str  # as `mcp install` calls it
    program: str  # below the installed packages
    list: Sequence[str]
    scopes: Sequence[str]
    connected: str = ""  # a pattern in the line that names the server; "": its list does not tell
    consent: Consent = lambda _home, _workspace: {}
    approve: Sequence[str] = ()  # its command that agrees to a server of the workspace, before the server's name
    proof: Proof | None = None  # another way to see that it connects, where the list does not tell
    proven: Sequence[str] = ()  # the scopes in which that way works
    before: Mapping[str, str] = {}  # files below the home that a user has already
    environ: Mapping[str, str] = {}
    uninstall: Sequence[str] = ()  # what `mcp uninstall` is told in addition


def kinds() -> list[Kind]:
    system, machine = _npm_platform()
    return [
        Kind(
            "claude-code",
            f"@anthropic-ai/claude-code-{system}-{machine}/claude",
            ["mcp", "list"],
            (WORKSPACE, USER),
            "Connected",
            lambda _home, _workspace: {".claude/settings.json": json.dumps({"enableAllProjectMcpServers": True})},
            before={".claude.json": '{\n  "theme": "dark"\n}\n'},
            environ={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        ),
        Kind(
            "codex",
            ".bin/codex",
            ["mcp", "list"],
            (WORKSPACE, USER),
            consent=lambda _home, workspace: {
                ".codex/config.toml": f'# mine\n[projects."{workspace}"]\ntrust_level = "trusted"  # asked once\n'
            },
            proof=connects_in_app_server,
            proven=(USER,),  # the app server asks for a conversation before it looks into a workspace
        ),
        Kind(
            "gemini-cli",
            ".bin/gemini",
            ["mcp", "list"],
            (WORKSPACE, USER),
            "Connected",
            lambda _home, workspace: {".gemini/trustedFolders.json": json.dumps({str(workspace): "TRUST_FOLDER"})},
            before={".gemini/settings.json": '{\n\t// tabs and a comment\n\t"ui": { "hideTips": true }\n}'},
        ),
        Kind(
            "opencode",
            f"opencode-{system}-{machine}/bin/opencode",
            ["mcp", "list"],
            (WORKSPACE, USER),
            "connected",
            before={
                ".config/opencode/opencode.json": '{\n  // kept\n  "$schema": "https://opencode.ai/config.json",\n}\n'
            },
            environ={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
        ),
        Kind(
            "copilot-cli",
            ".bin/copilot",
            ["mcp", "list"],
            (WORKSPACE, USER),
            consent=lambda _home, workspace: {".copilot/config.json": json.dumps({"trustedFolders": [str(workspace)]})},
            proof=offers_tools_to_its_model,
            proven=(WORKSPACE, USER),
            before={".copilot/mcp-config.json": '{\n  // none yet\n  "mcpServers": {}\n}\n'},
            uninstall=["--all-scopes"],  # in a workspace it has only the file that is others' first
        ),
        Kind(
            "qwen",
            ".bin/qwen",
            ["mcp", "list"],
            (WORKSPACE, USER),
            "Connected",
            approve=["mcp", "approve"],
            before={".qwen/settings.json": '{\r\n  "$version": 4 // as qwen writes it\r\n}\r\n'},
        ),
        Kind(
            "kilo",
            f"@kilocode/cli-{system}-{machine}/bin/kilo",
            ["mcp", "list"],
            (WORKSPACE,),  # it is OpenCode's in other files, and takes its time
            "connected",
        ),
        Kind("droid", f"@factory/cli-{system}-{machine}/bin/droid", ["mcp", "list"], (WORKSPACE, USER), "connected"),
    ]


def programs(packages: Path, folder: Path) -> str:
    """A PATH on which all of them are that this system has."""
    folder.mkdir()
    for kind in kinds():
        program = packages / kind.program
        if program.exists():
            (folder / program.name).symlink_to(program)
    return os.pathsep.join((str(folder), str(NODE.parent), os.environ.get("PATH", os.defpath)))


def _npm_platform() -> tuple[str, str]:
    system = {"linux": "linux", "darwin": "darwin", "win32": "win32"}[sys.platform]
    return system, "arm64" if os.uname().machine in ("arm64", "aarch64") else "x64"
