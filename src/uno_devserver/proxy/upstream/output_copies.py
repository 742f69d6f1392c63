"""Starts a .NET server from a copy of its output, so that a build neither meets files in use nor changes them.

A file that is the same as in the last copy is a link to that one: nothing writes to copies. They are not links to the
output, because a build may write to its files in place. A copy is removed when its server has ended, or by a later
proxy.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat

from ...system.files import make_folders
from ...system.log import log
from ...system.processes import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...workspace.server_command import ServerLine


class OutputCopies:
    def __init__(self) -> None:
        self._count = 0
        self._last: tuple[str, dict[str, bytes]] = ("", {})  # the last copy, and its content
        self._users: dict[str, list[int]] = {}  # for each copy, the processes that were started from it

    def copied(self, server: ServerLine) -> ServerLine:
        """The command line that starts the server from a copy; unchanged if there is no output, or no room."""
        if not server.output or not os.path.isdir(server.output):
            return server
        try:
            copy = self._copy(server.output, server.copies)
        except (OSError, shutil.Error) as error:
            log.warn(f"The server is started from {server.output}, which the next build writes to: {error}")
            return server
        built = server.built()
        line = tuple(copy + word[len(server.output) :] if word in built else word for word in server.line)
        return server.replace(line=line, output=copy)

    def used(self, copy: str, process: int) -> None:
        """Keep a copy as long as this process runs."""
        self._users.setdefault(copy, []).append(process)

    def _copy(self, output: str, copies: str) -> str:
        content = _content(output)
        last, known = self._last
        if content == known and os.path.isdir(last):
            return last
        make_folders(copies)
        parent = os.path.dirname(copies)
        if os.path.islink(copies) or os.path.islink(parent):
            raise OSError(f"{copies} is behind a link, and copies there are removed again")
        self._remove_unused(copies, keep=last)
        self._count += 1
        copy = os.path.join(copies, f"{os.getpid()}-{self._count}")

        def same(source: str, target: str) -> str:
            relative = os.path.relpath(source, output)
            if relative in known and known[relative] == content.get(relative):
                try:
                    os.link(os.path.join(last, relative), target)
                    return target
                except OSError:  # the file system has no links
                    pass
            return str(shutil.copy2(source, target))

        shutil.copytree(output, copy, symlinks=True, copy_function=same)
        self._last = copy, content
        return copy

    def _remove_unused(self, copies: str, keep: str) -> None:
        for name in os.listdir(copies):
            path, owner = os.path.join(copies, name), name.partition("-")[0]
            if path == keep or not re.fullmatch(r"[0-9]+-[0-9]+(-removed)?", name):
                continue
            users = self._users.get(path, []) if int(owner) == os.getpid() else [int(owner)]
            if not any(map(is_alive, users)):
                _remove(path)


def _content(folder: str) -> dict[str, bytes]:
    """The digest of each file, by its path from the folder."""
    found = {}
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names):
            if not stat.S_ISREG(os.lstat(path).st_mode):  # a link, or a pipe that nobody writes
                continue
            with open(path, "rb") as stream:
                found[os.path.relpath(path, folder)] = hashlib.file_digest(stream, "sha256").digest()
    return found


def _remove(path: str) -> None:
    """Remove a copy, or nothing of it where its files are in use: Windows renames no folder then."""
    removed = path if path.endswith("-removed") else f"{path}-removed"
    try:
        os.rename(path, removed)
    except OSError:
        return
    shutil.rmtree(removed, ignore_errors=True)
