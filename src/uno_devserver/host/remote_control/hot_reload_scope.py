"""The scope `HotReload`: edits files, and reports that this Host has no metadata updates.

Every request for edits that has a RequestId is answered, even a malformed one.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from ...system.log import log
from ..addins.manager import HOT_RELOAD_SCOPE
from .connection import Handle
from .file_edits import BAD_REQUEST, DONE, MAX_EDITS, NO_CHANGES, EditResult, FileEdit, apply_edits
from .frames import ContentProblem, Frame, Members, read_members

if TYPE_CHECKING:
    from ..addins.handlers import App

DISABLED = -1
NO_METADATA_UPDATES = (
    "Code changes cannot be applied to the running app: metadata updates need the .NET Host, and this is the bundled "
    "one. Start the .NET Host with 'uno-devserver start --host dotnet', or restart the app to see changes."
)
NO_HOT_RELOAD = {"HotReloadCorrelationId": None}  # there is no hot reload that the app could wait for
_OUTCOMES = {DONE: "done", NO_CHANGES: "nothing to change"}


class HotReloadScope:
    """Shared by all apps, so that requests for edits are handled one at a time and none undoes another."""

    def __init__(self, workspace: str | None) -> None:
        self._workspace = None if workspace is None else os.path.abspath(workspace)
        self._editing = asyncio.Lock()
        self.actions: dict[str, Handle] = {
            "ConfigureServer": self._configure,
            "XamlLoadError": self._report_xaml,
            "UpdateFile": self._update_file,
            "UpdateFileRequest": self._update_files,
            "HotReloadClientOperationEvent": self._note_operation,
        }

    async def _configure(self, frame: Frame, app: App) -> None:
        request = read_members(frame.content)
        # An app does not ask for them if its IDE has them applied; an error would be shown as fatal there.
        error = NO_METADATA_UPDATES if request.flag("EnableMetadataUpdates") else None
        log.debug(f"/rc: hot reload was configured by an app of {request.text('ProjectPath')}")
        # The .NET Host uses the name of another message here too; old apps rely on it.
        app.send("UpdateFile", {"WorkspaceInitialized": False})
        status = {"State": DISABLED, "Operations": [], "ServerError": error, "Scope": HOT_RELOAD_SCOPE}
        app.send("HotReloadStatusMessage", status)

    async def _report_xaml(self, frame: Frame, _: App) -> None:
        error = read_members(frame.content)
        what = f"{error.text('ExceptionType')}: {error.text('Message')}\n{error.text('StackTrace') or ''}"
        log.warn(f"The app could not load {error.text('FilePath')}: {what.rstrip()}")

    async def _note_operation(self, frame: Frame, _: App) -> None:
        log.debug(f"/rc: the app reports on hot reload: {frame.content}")

    async def _update_files(self, frame: Frame, app: App) -> None:
        request = read_members(frame.content)
        request_id = request.text("RequestId")
        results: tuple[EditResult, ...] = ()
        problem: str | None = None
        try:
            results = await self._edit(tuple(_edit(edit) for edit in request.objects("Edits")))
        except ContentProblem as error:
            problem = f"The request is refused: {error}."
        listed = [_result(result) for result in results]
        response = {"RequestId": request_id, "GlobalError": problem, "Results": listed, **NO_HOT_RELOAD}
        app.send("UpdateFileResponse_2", response)

    async def _update_file(self, frame: Frame, app: App) -> None:
        """Make one edit, requested in the form of older apps."""
        request = read_members(frame.content)
        request_id = request.text("RequestId")
        try:
            (result,) = await self._edit((_edit(request),))
        except ContentProblem as error:
            result = EditResult("", BAD_REQUEST, f"The request is refused: {error}.")
        app.send("UpdateFileResponse", {"RequestId": request_id, **_result(result), **NO_HOT_RELOAD})

    async def _edit(self, edits: tuple[FileEdit, ...]) -> tuple[EditResult, ...]:
        if not 1 <= len(edits) <= MAX_EDITS:
            raise ContentProblem(f"it has {len(edits):,} edits; between 1 and {MAX_EDITS:,} are possible")
        async with self._editing:
            results = await asyncio.to_thread(apply_edits, self._workspace, edits)
        for result in results:
            log.info(f"An app asked to edit {result.path}: {result.error or _OUTCOMES[result.result]}")
        return results


def _result(result: EditResult) -> dict[str, object]:
    return {"FilePath": result.path, "Result": result.result, "Error": result.error}


def _edit(members: Members) -> FileEdit:
    return FileEdit(
        members.text("FilePath") or "",
        members.text("OldText"),
        members.text("NewText"),
        members.flag("IsCreateDeleteAllowed"),
    )
