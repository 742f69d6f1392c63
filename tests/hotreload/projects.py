"""Packages whose builds a test can follow: real npm, scripts that note what they do, and waits with a bound."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from support.hosts import is_running
from support.npm import NODE, NPM

# Notes its beginning and its end, and copies src/main.js to dist/. Waits while src/gate exists (a test's hand on it).
BUILD = """
const fs = require('fs'), path = require('path');
const note = (line) => fs.appendFileSync('builds.txt', line + '\\n');
const content = fs.readFileSync('src/main.js', 'utf8').trim();
note('begin ' + content);
(async () => {
  while (fs.existsSync('gate')) await new Promise((done) => setTimeout(done, 10));
  if (content.includes('broken')) {
    console.log('src/main.js: there is an error');
    console.error('and one line on stderr');
    process.exit(2);
  }
  fs.mkdirSync('dist', { recursive: true });
  fs.writeFileSync('dist/main.js', content);
  note('end ' + content);
})();
"""


class Project:
    """An npm package in a folder of its own, with the programs that build it."""

    def __init__(self, folder: Path, programs: Path, script: str = "build") -> None:
        self.root = folder
        self.environ = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder.parent)}
        self.source = folder / "src" / "main.js"
        self.gate = folder / "gate"
        self.source.parent.mkdir(parents=True)
        (folder / "tools").mkdir()
        (folder / "node_modules").mkdir()
        (folder / "tools" / "build.txt").write_text(BUILD)
        self.describe({script: "node tools/build.txt"})
        (folder / "package-lock.json").write_text("{}")
        self.save("one")

    def describe(self, scripts: dict[str, str], **more: Any) -> None:
        (self.root / "package.json").write_text(json.dumps({"name": "server", "scripts": scripts, **more}))

    def save(self, content: str) -> None:
        self.source.write_text(content + "\n")

    def hold_builds(self) -> None:
        self.gate.touch()

    def let_builds_go(self) -> None:
        self.gate.unlink()

    def noted(self) -> list[str]:
        """What builds have done so far, in order."""
        try:
            return (self.root / "builds.txt").read_text().splitlines()
        except FileNotFoundError:
            return []


def real_npm(folder: Path) -> Path:
    """A folder with `node` and `npm`, of the versions that tests have."""
    folder.mkdir(parents=True, exist_ok=True)
    program(folder / "npm", f'#!/bin/sh\nexec "{NODE}" "{NPM}" "$@"\n')
    (folder / "node").symlink_to(NODE)
    return folder


# Runs a script of package.json, as `npm run` does, without npm's own half a second.
NPM_RUN = """#!/bin/sh
exec node -e "
const { scripts } = JSON.parse(require('fs').readFileSync('package.json'));
const { status } = require('child_process').spawnSync('sh', ['-c', scripts['$2']], { stdio: 'inherit' });
process.exit(status)
"
"""


def stand_in_npm(folder: Path) -> Path:
    """A folder with `node`, and an `npm` that can run scripts only."""
    program(folder / "npm", NPM_RUN)
    (folder / "node").symlink_to(NODE)
    return folder


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def running_in(folder: Path) -> list[int]:
    """The processes whose current folder is this one."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(folder) and is_running(int(name)):
                found.append(int(name))
        except OSError:
            continue
    return found
