"""The authority on real packages: real files and watchers, real npm, and an owner that does as it is told."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from uno_devserver.hotreload.authority import UNCHANGED, AuthorityProblem, CheckResult, RestartResult
from uno_devserver.hotreload.client_app import ClientApp, ClientLimits
from uno_devserver.hotreload.digest_store import DigestStore
from uno_devserver.hotreload.local_authority import LocalAuthority
from uno_devserver.hotreload.package_state import PackageLimits
from uno_devserver.hotreload.sources.source_tree import Sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.system.inotify import available
from uno_devserver.workspace.config import ClientCommand, Strategy

from .projects import Project, real_npm, running_in, until

DUE = CheckResult(server_changed=True, server_rebuilt=True)


class Owner:
    """A proxy as far as the authority sees it: what it starts works, unless it is told otherwise."""

    def __init__(
        self,
        state: Path,
        *packages: WatchedPackage,
        environ: Mapping[str, str] = os.environ,
        client: ClientApp | None = None,
        limits: PackageLimits | None = None,
    ) -> None:
        self.restarts = 0
        self.outcome = RestartResult(True, lists="same")
        self.gate = asyncio.Event()
        self.gate.set()
        self.told: list[str] = []
        self.said: list[str] = []
        self.on_status: Callable[[], None] = lambda: None
        self.defect: Exception | None = None
        self.authority = LocalAuthority(
            packages,
            DigestStore(str(state), str(state.parent)),
            environ,
            str(state),
            strategy=Strategy.RESTART,
            restart=self._restart,
            answers=self._answers,
            say=lambda _level, text: self.said.append(text),
            status_changed=lambda: self.on_status(),
            client=client,
            limits=limits,
        )

    @property
    def server(self) -> dict[str, Any]:
        """What the status says of the first package."""
        found: dict[str, Any] = self.authority.status()["packages"][0]
        return found

    def unread(self) -> bool:
        """Whether something has happened to the first package's files that the authority has not looked at."""
        return self.authority._packages[0].fingerprint.news() is not False

    async def start(self) -> None:
        await self.authority.launched()
        self.authority.connected()

    async def check(self) -> CheckResult:
        return await self.authority.check(self.told.append)

    async def reload(self) -> CheckResult:
        """As the pipeline does it."""
        result = await self.check()
        if result.restart_due:
            await self.authority.ready_to_restart()
        return result

    async def _restart(self) -> RestartResult:
        self.restarts += 1
        await self.gate.wait()
        if self.defect:
            raise self.defect
        return self.outcome

    async def _answers(self) -> bool:
        return True


@asynccontextmanager
async def owner_of(
    project: Project, role: Role = Role.SERVER, *, started: bool = True, limits: PackageLimits | None = None
) -> AsyncIterator[Owner]:
    state = project.root.parent / "state"
    owner = Owner(state, WatchedPackage(role, str(project.root)), limits=limits, environ=project.environ)
    try:
        if started:
            await owner.start()
        yield owner
    finally:
        await owner.authority.close()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_npm(tmp_path_factory.mktemp("programs") / "bin")


@pytest.fixture
def project(tmp_path: Path, programs: Path) -> Project:
    return Project(tmp_path / "server", programs)


@pytest.fixture
def python_server(tmp_path: Path) -> Path:
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "main.py").write_text("VALUE = 1\n")
    return folder


def owner_of_python(folder: Path, limits: PackageLimits | None = None) -> Owner:
    return Owner(folder.parent / "state", WatchedPackage(Role.SERVER, str(folder)), limits=limits)


def kept_file(folder: Path) -> dict[str, dict[str, str]]:
    [path] = (folder / "state" / "hotreload").iterdir()
    packages = json.loads(path.read_text())["packages"]
    assert isinstance(packages, dict)
    return packages


# --- what has changed ---------------------------------------------------------------------------------------------


async def test_where_nothing_has_changed_nothing_is_built_and_the_next_question_costs_nothing(project: Project) -> None:
    async with owner_of(project) as owner:
        assert await owner.check() == UNCHANGED

        assert owner.authority.news() is False
        assert project.noted() == []


async def test_a_save_is_news_at_once_and_built_before_the_answer(project: Project) -> None:
    async with owner_of(project) as owner:
        await owner.check()

        project.save("two")

        assert owner.authority.news() is True
        assert await owner.check() == DUE
        assert project.noted() == ["begin two", "end two"]
        assert owner.told[:2] == ["the code of the server has changed", "npm run build runs for the server"]


async def test_after_a_restart_the_new_content_is_what_runs(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("two")

        assert await owner.reload() == DUE

        assert await owner.check() == UNCHANGED
        assert owner.authority.news() is False
        assert (owner.restarts, len(project.noted())) == (1, 2)


async def test_touching_saving_the_same_and_changing_modes_is_no_change(project: Project) -> None:
    async with owner_of(project) as owner:
        await owner.check()

        project.source.touch()
        project.source.chmod(0o600)
        project.save("one")

        assert await owner.check() == UNCHANGED
        assert owner.authority.news() is False


async def test_python_needs_no_build(python_server: Path) -> None:
    owner = owner_of_python(python_server)
    await owner.start()
    (python_server / "main.py").write_text("VALUE = 2\n")

    assert await owner.reload() == DUE
    assert await owner.check() == UNCHANGED

    assert owner.restarts == 1
    assert owner.authority.status()["builds"] == 0
    await owner.authority.close()


async def test_compiled_copies_of_all_that_was_saved_before_a_restart_is_due_are_gone(python_server: Path) -> None:
    # given two modules with compiled copies; the second is saved when the check has seen the first
    (python_server / "other.py").write_text("VALUE = 1\n")
    (python_server / "__pycache__").mkdir()
    copies = [python_server / "__pycache__" / f"{name}.cpython-311.pyc" for name in ("main", "other")]
    for copy in copies:
        copy.touch()
    owner = owner_of_python(python_server)
    await owner.start()
    fingerprint = owner.authority._packages[0].fingerprint
    digest, saves = fingerprint.digest, ["main.py", "other.py"]

    def save_and_digest() -> str:
        (python_server / saves.pop(0)).write_text("VALUE = 2\n")
        return digest()

    fingerprint.digest = save_and_digest  # type: ignore[method-assign]

    # when it is done
    assert await owner.check() == DUE

    # then Python has to read both anew
    assert [copy.exists() for copy in copies] == [False, False]
    await owner.authority.close()


async def test_a_change_that_is_taken_back_before_the_restart_needs_none(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("two")
        assert await owner.check() == DUE
        project.save("one")

        assert await owner.check() == UNCHANGED

        assert (await owner.authority.ready_to_restart()).ok
        assert owner.restarts == 0


async def test_what_was_built_of_a_change_that_was_taken_back_is_not_taken_for_the_old_one(project: Project) -> None:
    # given a build of two that was never started, and one on disk again
    async with owner_of(project) as owner:
        project.save("two")
        await owner.check()
        project.save("one")

        # when the server crashes before anybody asks, so that the output of the build runs
        await owner.start()

        # then that is noticed
        assert await owner.reload() == DUE
        assert project.noted()[-1] == "end one"
        assert await owner.check() == UNCHANGED


@pytest.mark.parametrize(("edit", "role"), [("two", Role.SERVER), ("broken", Role.SERVER), ("broken", Role.EXTENSION)])
async def test_what_a_change_has_left_behind_that_was_taken_back_is_built_over_once(
    project: Project, edit: str, role: Role
) -> None:
    # given a swap that failed, because of the build or of the start, and the old content on disk again
    async with owner_of(project, role) as owner:
        owner.outcome = RestartResult(False, "It ended with exit code 1.", kept=True)
        project.save(edit)
        await owner.reload()
        project.save("one")

        # when a tool is called
        assert await owner.check() == UNCHANGED

        # then what a crash would start is the old content, and that is enough
        assert (project.root / "dist" / "main.js").read_text() == "one"
        assert await owner.check() == UNCHANGED
        assert owner.authority.news() is False
        assert project.noted()[-2:] == ["begin one", "end one"]
        assert project.noted().count("end one") == 1
        assert owner.authority.status()["builds"] == 2
        await owner.start()
        assert await owner.check() == UNCHANGED


async def test_where_the_old_content_cannot_be_built_any_more_that_is_a_failed_build(project: Project) -> None:
    async with owner_of(project) as owner:
        owner.outcome = RestartResult(False, "It ended with exit code 1.", kept=True)
        project.save("two")
        await owner.reload()
        project.describe({"build": "node tools/missing.txt"})
        project.save("one")

        result = await owner.check()

        assert "missing.txt" in (result.server_build_error or "")
        assert not result.restart_due
        [failure] = owner.authority.status()["failing"]
        assert failure["step"] == "build"


# --- from one proxy to the next -----------------------------------------------------------------------------------


async def test_at_first_sight_the_content_is_stored_without_a_build_or_a_restart(
    project: Project, tmp_path: Path
) -> None:
    async with owner_of(project) as owner:
        assert await owner.check() == UNCHANGED
        running = owner.server["sha256"]["running"]

    assert kept_file(tmp_path) == {str(project.root): {"sha256": running}}
    assert project.noted() == []


async def test_what_was_saved_while_no_proxy_ran_is_built_at_the_first_check(project: Project) -> None:
    async with owner_of(project):
        pass
    project.save("two")

    async with owner_of(project) as owner:
        assert await owner.reload() == DUE
        assert await owner.check() == UNCHANGED
    async with owner_of(project) as owner:
        assert await owner.check() == UNCHANGED

    assert project.noted() == ["begin two", "end two"]


async def test_nothing_is_stored_before_the_server_works(project: Project, tmp_path: Path) -> None:
    async with owner_of(project) as owner:
        await until(lambda: owner.server["sha256"]["kept"] is not None)
        before = kept_file(tmp_path)[str(project.root)]["sha256"]
        project.save("two")
        await owner.check()
        owner.outcome = RestartResult(False, "It ended with exit code 1.")

        await owner.authority.ready_to_restart()

        assert kept_file(tmp_path)[str(project.root)]["sha256"] == before
        owner.outcome = RestartResult(True)
        project.save("three")
        await owner.reload()
        after = owner.server["sha256"]["now"]
        assert kept_file(tmp_path) == {str(project.root): {"sha256": after}}


async def test_a_home_that_cannot_be_written_prevents_nothing(project: Project, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")

    async with owner_of(project) as owner:
        project.save("two")
        assert await owner.reload() == DUE
        assert await owner.check() == UNCHANGED

    assert project.noted() == ["begin two", "end two"]


# --- servers that do not start ------------------------------------------------------------------------------------


async def test_a_server_that_was_never_built_is_built_by_the_next_check(project: Project) -> None:
    async with owner_of(project, started=False) as owner:
        await owner.authority.launched()
        owner.authority.failed()

        assert await owner.reload() == DUE

        assert await owner.check() == UNCHANGED
        assert project.noted() == ["begin one", "end one"]


async def test_a_server_that_fails_faster_than_its_code_is_read_is_built_too(project: Project) -> None:
    async with owner_of(project, started=False) as owner:
        launching = asyncio.ensure_future(owner.authority.launched())
        await asyncio.sleep(0)  # it has begun
        owner.authority.failed()
        await launching

        assert await owner.reload() == DUE
        assert await owner.check() == UNCHANGED


async def test_a_server_that_works_before_its_code_is_read_counts_as_what_was_read(python_server: Path) -> None:
    owner = owner_of_python(python_server)
    launching = asyncio.ensure_future(owner.authority.launched())
    await asyncio.sleep(0)  # it has begun
    owner.authority.connected()
    await launching

    assert owner.server["sha256"]["running"] == owner.server["sha256"]["now"] is not None
    await owner.authority.close()


async def test_a_server_whose_code_could_not_be_read_when_it_started_is_started_again(python_server: Path) -> None:
    owner = owner_of_python(python_server)
    elsewhere = python_server.rename(python_server.with_name("elsewhere"))
    await owner.start()
    elsewhere.rename(python_server)

    assert await owner.reload() == DUE

    assert await owner.check() == UNCHANGED
    assert owner.restarts == 1
    await owner.authority.close()


async def test_output_that_somebody_has_deleted_is_built_again(project: Project) -> None:
    async with owner_of(project):
        pass
    async with owner_of(project, started=False) as owner:
        await owner.authority.launched()
        owner.authority.failed()

        assert await owner.reload() == DUE

    assert project.noted() == ["begin one", "end one"]


async def test_content_that_does_not_start_is_not_tried_again_until_it_changes(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("two")
        owner.outcome = RestartResult(False, "It ended with exit code 1.")
        await owner.reload()

        assert (await owner.check()).replace(server_digest=None) == UNCHANGED
        assert owner.authority.news() is False

        project.save("three")
        owner.outcome = RestartResult(True)
        assert await owner.reload() == DUE
        assert await owner.check() == UNCHANGED
        assert owner.restarts == 2


async def test_after_a_swap_that_failed_the_old_content_runs_and_is_not_replaced_by_the_same_again(
    python_server: Path,
) -> None:
    owner = owner_of_python(python_server)
    await owner.start()
    (python_server / "main.py").write_text("broken\n")
    owner.outcome = RestartResult(False, "It ended with exit code 1.", kept=True)
    await owner.reload()

    still = await owner.check()
    assert still == UNCHANGED.replace(server_digest=still.server_digest)
    assert still.server_digest, "what lies there is not what runs"
    (python_server / "main.py").write_text("VALUE = 1\n")  # what runs
    assert await owner.check() == UNCHANGED
    (python_server / "main.py").write_text("VALUE = 2\n")
    assert await owner.check() == DUE
    await owner.authority.close()


async def test_a_server_that_came_up_by_itself_counts_as_what_it_was_started_with(python_server: Path) -> None:
    owner = owner_of_python(python_server)
    await owner.start()
    (python_server / "main.py").write_text("VALUE = 2\n")
    assert await owner.check() == DUE

    await owner.start()  # it crashed, and was started with what lies there

    assert await owner.check() == UNCHANGED
    assert (await owner.authority.ready_to_restart()).ok
    assert owner.restarts == 0
    await owner.authority.close()


# --- builds that fail ---------------------------------------------------------------------------------------------


async def test_a_build_that_fails_is_told_whole_and_tried_again_by_each_check(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("broken")

        results = [await owner.check(), await owner.check()]

        for result in results:
            assert (result.server_changed, result.server_rebuilt, result.restart_due) == (True, False, False)
            assert result.server_build_error
            assert "there is an error\nand one line on stderr" in result.server_build_error
            assert result.server_digest == owner.server["sha256"]["now"]
        assert project.noted() == ["begin broken", "begin broken"]
        assert owner.authority.news() is None  # only a check can tell
        assert (await owner.authority.ready_to_restart()).ok
        assert owner.restarts == 0


async def test_a_build_that_was_mended_leads_to_one_restart(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("broken")
        await owner.check()
        project.save("two")

        assert await owner.reload() == DUE

        assert (owner.restarts, await owner.check()) == (1, UNCHANGED)


async def test_what_a_failed_build_has_left_is_not_trusted_by_the_next_proxy(project: Project) -> None:
    # given output that nobody knows: a build of it failed half way
    async with owner_of(project) as owner:
        project.save("broken")
        await owner.check()
    project.save("one")  # what was built well before

    # when the next proxy starts it
    async with owner_of(project) as owner:
        result = await owner.check()

    # then it is built
    assert result == DUE
    assert project.noted() == ["begin broken", "begin one", "end one"]


async def test_a_manager_that_is_missing_is_told_with_what_to_do(project: Project) -> None:
    (project.root / "package-lock.json").unlink()
    (project.root / "pnpm-lock.yaml").touch()
    project.environ["PATH"] = str(project.root)
    async with owner_of(project) as owner:
        project.save("two")

        result = await owner.check()

    assert result.server_build_error
    assert result.server_build_error.startswith("pnpm is not in the folders of PATH. Install it")


# --- saves at a bad moment ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("watched", [True, False])
async def test_a_save_during_a_build_cancels_it_and_only_the_newest_content_is_built(
    project: Project, monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    monkeypatch.setattr("uno_devserver.system.inotify.available", lambda _platform: watched)
    async with owner_of(project) as owner:
        project.hold_builds()
        project.save("two")
        checking = asyncio.ensure_future(owner.check())
        await until(lambda: project.noted() == ["begin two"])

        project.save("three")
        await until(lambda: project.noted() == ["begin two", "begin three"])
        project.let_builds_go()

        assert await checking == DUE
        assert project.noted() == ["begin two", "begin three", "end three"]
        await owner.authority.ready_to_restart()
        assert await owner.check() == UNCHANGED


@pytest.mark.parametrize("role", Role)
async def test_a_change_that_is_taken_back_while_it_is_built_is_none(project: Project, role: Role) -> None:
    async with owner_of(project, role) as owner:
        project.hold_builds()
        project.save("two")
        checking = asyncio.ensure_future(owner.check())
        await until(lambda: project.noted() == ["begin two"])

        project.save("one")
        await until(lambda: project.noted() == ["begin two", "begin one"])
        project.let_builds_go()

        assert await checking == UNCHANGED
        assert project.noted()[-1] == "end one"


async def test_whoever_waits_for_a_build_hears_of_it_again_and_again(project: Project) -> None:
    async with owner_of(project) as owner:
        project.hold_builds()
        project.save("two")
        checking = asyncio.ensure_future(owner.check())

        await until(lambda: sum("npm run build runs for the server (" in said for said in owner.told) == 2)
        project.let_builds_go()

        assert await checking == DUE


async def test_touching_a_source_during_a_build_does_not_cancel_it(project: Project) -> None:
    async with owner_of(project) as owner:
        project.hold_builds()
        project.save("two")
        checking = asyncio.ensure_future(owner.check())
        await until(lambda: project.noted() == ["begin two"])

        project.source.touch()
        project.save("two")
        assert owner.unread()
        await until(lambda: not owner.unread())
        project.let_builds_go()

        assert await checking == DUE
        assert project.noted() == ["begin two", "end two"]


async def test_a_save_during_a_restart_is_seen_by_the_next_check(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("two")
        await owner.check()
        owner.gate.clear()
        restarting = asyncio.ensure_future(owner.authority.ready_to_restart())
        await until(lambda: owner.restarts == 1)

        project.save("three")
        owner.gate.set()
        await restarting

        assert await owner.reload() == DUE
        assert await owner.check() == UNCHANGED
        assert project.noted()[-1] == "end three"


async def test_who_asks_during_a_restart_is_told_to_join_it(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("two")
        await owner.check()
        owner.gate.clear()
        restarting = asyncio.ensure_future(owner.authority.ready_to_restart())
        await until(lambda: owner.restarts == 1)

        assert await owner.check() == DUE
        assert owner.authority.status()["state"] == "restarting"
        joining = asyncio.ensure_future(owner.authority.ready_to_restart())
        owner.gate.set()

        assert await joining == await restarting
        assert owner.restarts == 1


async def test_an_attempt_that_fails_during_a_restart_decides_nothing(python_server: Path) -> None:
    owner = owner_of_python(python_server)
    await owner.start()
    (python_server / "main.py").write_text("VALUE = 2\n")
    await owner.check()
    owner.gate.clear()
    restarting = asyncio.ensure_future(owner.authority.ready_to_restart())
    await until(lambda: owner.restarts == 1)

    owner.authority.failed()
    owner.gate.set()

    assert (await restarting).ok
    assert owner.server["sha256"]["running"] == owner.server["sha256"]["now"]
    assert await owner.check() == UNCHANGED
    await owner.authority.close()


async def test_who_is_ready_to_restart_while_newer_content_is_built_gets_that(project: Project) -> None:
    # given content that is ready to be started, and a build of newer content for somebody else
    async with owner_of(project) as owner:
        project.save("two")
        assert await owner.check() == DUE
        project.hold_builds()
        project.save("three")
        checking = asyncio.ensure_future(owner.check())
        await until(lambda: project.noted()[-1] == "begin three")

        # when the first one has no calls left
        restarting = asyncio.ensure_future(owner.authority.ready_to_restart())
        await asyncio.sleep(0)  # it has asked
        before = owner.restarts
        project.let_builds_go()

        # then what is written at the moment is not started
        assert (before, await restarting, await checking) == (0, owner.outcome, DUE)
        assert (await owner.authority.ready_to_restart()).ok
        assert owner.restarts == 1
        assert await owner.check() == UNCHANGED
        assert project.noted()[-1] == "end three"


async def test_a_check_without_an_answer_takes_no_restart_back_that_is_due(python_server: Path) -> None:
    owner = owner_of_python(python_server)
    await owner.start()
    (python_server / "main.py").write_text("VALUE = 2\n")
    assert await owner.check() == DUE
    elsewhere = python_server.rename(python_server.with_name("elsewhere"))
    with pytest.raises(AuthorityProblem):
        await owner.check()
    elsewhere.rename(python_server)

    assert (await owner.authority.ready_to_restart()).ok

    assert owner.restarts == 1
    assert await owner.check() == UNCHANGED
    await owner.authority.close()


async def test_a_build_that_writes_one_of_its_sources_comes_to_an_end(project: Project) -> None:
    # given a build that writes a source, the same each time
    project.describe({"build": "node tools/build.txt && echo '// generated' > src/generated.js"})
    async with owner_of(project) as owner:
        project.save("two")

        # when it is built
        assert await owner.reload() == DUE

        # then what it wrote belongs to what was built
        assert await owner.check() == UNCHANGED
        assert 1 <= project.noted().count("end two") <= 2


async def test_a_build_that_writes_something_else_each_time_is_not_repeated_for_ever(project: Project) -> None:
    script = "node -e \"require('fs').writeFileSync('src/stamp.js', '// ' + process.hrtime.bigint())\""
    project.describe({"build": f"node tools/build.txt && {script}"})
    async with owner_of(project, limits=PackageLimits(most_cancels=1)) as owner:
        project.save("two")

        assert await owner.reload() == DUE

        assert await owner.check() == UNCHANGED
        assert project.noted().count("end two") <= 4


async def test_sources_that_change_for_ever_do_not_hold_calls_for_ever(project: Project) -> None:
    # given somebody who saves other files all the time
    stop = threading.Event()

    def save_for_ever() -> None:
        number = 0
        while not stop.wait(0.02):
            number += 1
            (project.root / "src" / f"file{number % 7}.js").write_text(f"// {number}\n")

    async with owner_of(project, limits=PackageLimits(most_cancels=1, most_builds=2)) as owner:
        project.save("two")
        saver = threading.Thread(target=save_for_ever)
        saver.start()
        try:
            # when a check is made
            result = await owner.check()
        finally:
            stop.set()
            saver.join()

        # then it ends, and the next one looks again
        assert result == DUE
        assert owner.authority.news() is not False
        await owner.authority.ready_to_restart()
        assert await owner.reload() == DUE
        assert await owner.check() == UNCHANGED


# --- many who ask -------------------------------------------------------------------------------------------------


async def test_eight_checks_at_once_share_one_build_and_eight_restarts_one(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("two")

        results = await asyncio.gather(*(owner.check() for _ in range(8)))
        outcomes = await asyncio.gather(*(owner.authority.ready_to_restart() for _ in range(8)))
        late = await owner.authority.ready_to_restart()

        assert results == [DUE] * 8
        assert [*outcomes, late] == [RestartResult(True, lists="same")] * 9
        assert project.noted() == ["begin two", "end two"]
        assert owner.restarts == 1


async def test_eight_checks_of_a_broken_build_make_one_attempt(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("broken")

        results = await asyncio.gather(*(owner.check() for _ in range(8)))

        assert len(set(results)) == 1
        assert project.noted() == ["begin broken"]


async def test_a_check_goes_on_when_the_one_who_asked_for_it_is_cancelled(project: Project) -> None:
    async with owner_of(project) as owner:
        project.hold_builds()
        project.save("two")
        first = asyncio.ensure_future(owner.check())
        await until(lambda: project.noted() == ["begin two"])
        second = asyncio.ensure_future(owner.check())

        first.cancel()
        await asyncio.wait([first])
        project.let_builds_go()

        assert await second == DUE
        assert project.noted() == ["begin two", "end two"]


async def test_who_joins_a_check_after_a_save_that_it_has_not_seen_gets_another_one(python_server: Path) -> None:
    # given a check that has read the sources, and has not answered yet
    owner = owner_of_python(python_server)
    await owner.start()
    fingerprint = owner.authority._packages[0].fingerprint
    digest, read, may_answer = fingerprint.digest, threading.Event(), threading.Event()

    def slow_digest() -> str:
        seen = digest()
        read.set()
        may_answer.wait(30)
        return seen

    fingerprint.digest = slow_digest  # type: ignore[method-assign]
    first = asyncio.ensure_future(owner.check())
    await until(read.is_set)

    # when a source is saved, and somebody else asks
    (python_server / "main.py").write_text("VALUE = 2\n")
    second = asyncio.ensure_future(owner.check())
    await asyncio.sleep(0)  # it has asked
    may_answer.set()

    # then that one hears of it
    assert (await first, await second) == (UNCHANGED, DUE)
    await owner.authority.close()


async def test_what_a_check_finds_says_nothing_of_a_start_that_it_has_not_seen(python_server: Path) -> None:
    # given a server that is started while a check reads its code
    owner = owner_of_python(python_server)
    await owner.start()
    fingerprint, loop = owner.authority._packages[0].fingerprint, asyncio.get_running_loop()
    digest = fingerprint.digest

    def digest_during_a_start() -> str:
        loop.call_soon_threadsafe(owner.authority.connected)
        return digest()

    fingerprint.digest = digest_during_a_start  # type: ignore[method-assign]

    # when nothing has changed
    assert await owner.check() == UNCHANGED

    # then only another check can tell what that one runs
    assert owner.authority.news() is None
    await owner.authority.close()


async def test_what_failed_is_told_as_over_once_it_was_taken_back(project: Project) -> None:
    async with owner_of(project) as owner:
        await assert_told_as_over(owner, project.source, "broken\n")


@pytest.mark.parametrize("looks", [0, 1])
async def test_a_start_that_failed_is_told_as_over_once_its_change_was_taken_back(
    python_server: Path, looks: int
) -> None:
    owner = owner_of_python(python_server)
    await owner.start()
    owner.outcome = RestartResult(False, "It ended with exit code 1.", kept=True)
    await assert_told_as_over(owner, python_server / "main.py", "broken\n", looks)
    await owner.authority.close()


async def assert_told_as_over(owner: Owner, source: Path, edit: str, looks: int = 1) -> None:
    """`looks`: how often somebody asks between the failure and its end."""
    told: list[bool] = []  # whether something fails, each time that there is something new to tell
    owner.on_status = lambda: told.append(bool(owner.authority.status()["failing"]))
    before = source.read_text()
    source.write_text(edit)
    await owner.reload()
    for _ in range(looks):
        await owner.check()
    assert told[-1]

    source.write_text(before)
    assert await owner.check() == UNCHANGED

    assert not told[-1]


TWO_PROXIES = """
import asyncio, os, sys
from pathlib import Path
from hotreload.test_local_authority import Owner
from uno_devserver.hotreload.watched_package import WatchedPackage, Role

async def main(root, path, ok):
    owner = Owner(Path(root).parent / "state", WatchedPackage(Role.SERVER, root), environ={"PATH": path, "HOME": root})
    await owner.start()
    owner.outcome = owner.outcome.replace(ok=ok == "ok", kept=True)
    print("started", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        result = await owner.reload()
        print(result.restart_due, owner.restarts, (await owner.check()).server_changed, flush=True)
    await owner.authority.close()

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def two_proxies(project: Project, outcome: str) -> Iterator[Callable[[], list[str]]]:
    """Two processes that run the same server. Calling it asks both at the same time; what they say."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    arguments = [sys.executable, "-c", TWO_PROXIES, str(project.root), project.environ["PATH"], outcome]
    proxies = [
        subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)
        for _ in range(2)
    ]

    def said() -> list[str]:
        return [proxy.stdout.readline() for proxy in proxies if proxy.stdout]

    def ask() -> list[str]:
        for proxy in proxies:
            assert proxy.stdin
            proxy.stdin.write("go\n")
            proxy.stdin.flush()
        return said()

    try:
        assert said() == ["started\n"] * 2
        yield ask
    finally:
        for proxy in proxies:
            proxy.kill()
            proxy.communicate()


def test_two_proxies_of_one_package_build_once_and_restart_each_its_own(project: Project) -> None:
    with two_proxies(project, "ok") as ask:
        project.save("two")

        assert ask() == ["True 1 False\n"] * 2

    assert project.noted() == ["begin two", "end two"]


def test_two_proxies_build_once_over_what_was_taken_back(project: Project) -> None:
    with two_proxies(project, "failed") as ask:
        project.save("two")
        assert ask() == ["True 1 False\n"] * 2
        project.save("one")

        assert ask() == ["False 1 False\n"] * 2

    assert project.noted() == ["begin two", "end two", "begin one", "end one"]


async def test_a_build_of_another_process_that_does_not_end_is_told_and_none_runs_beside_it(project: Project) -> None:
    async with owner_of(project, limits=PackageLimits(lock_seconds=0.05)) as owner:
        lock = DigestStore(str(project.root.parent / "state"), "/elsewhere").build_lock(str(project.root))
        assert lock.acquire(0, lambda _holder: None)
        project.save("two")

        result = await owner.check()
        lock.release()

        assert (result.server_build_error or "").startswith("Another process has been building")
        assert project.noted() == []
        assert await owner.check() == DUE


# --- bounds -------------------------------------------------------------------------------------------------------


async def test_sources_that_take_too_long_to_read_are_no_answer_and_then_at_once(python_server: Path) -> None:
    # given a disk that does not answer for a while
    owner = owner_of_python(python_server, PackageLimits(look_seconds=0.05))
    await owner.start()
    await owner.check()
    server = owner.authority._server
    assert server
    disk = threading.Event()
    find = server.fingerprint._find

    def slow_find() -> object:
        disk.wait(30)
        return find()

    server.fingerprint._find = slow_find  # type: ignore[assignment]
    (python_server / "new.py").write_text("VALUE = 3\n")

    # when it is asked
    with pytest.raises(AuthorityProblem, match="takes longer than"):
        await owner.check()
    with pytest.raises(AuthorityProblem, match="has not come to an end yet"):
        await owner.check()

    # then it answers when the disk does
    disk.set()
    await until(lambda: server.disk._late is not None and server.disk._late.done())
    assert await owner.check() == DUE
    await owner.authority.close()


async def test_a_folder_that_has_gone_is_no_reason_to_give_up_what_runs(python_server: Path) -> None:
    owner = owner_of_python(python_server)
    await owner.start()
    await owner.check()
    elsewhere = python_server.rename(python_server.with_name("elsewhere"))

    with pytest.raises(AuthorityProblem, match="There is no folder"):
        await owner.check()

    elsewhere.rename(python_server)
    assert await owner.check() == UNCHANGED
    await owner.authority.close()


async def test_closing_ends_a_build_and_tells_those_who_wait(project: Project) -> None:
    async with owner_of(project) as owner:
        project.hold_builds()
        project.save("two")
        checking = asyncio.ensure_future(owner.check())
        await until(lambda: project.noted() == ["begin two"])
        assert running_in(project.root)

        await owner.authority.close()

        assert running_in(project.root) == []
        with pytest.raises(AuthorityProblem, match="The proxy is ending"):
            await checking


async def test_nothing_begins_any_more_once_it_is_closed(tmp_path: Path, python_server: Path) -> None:
    # given an authority that is closed while a change waits for its restart, and its server for its client
    command = ClientCommand(sys.executable, ("-ISc", "import signal; signal.pause()"))
    client = ClientApp(command, str(python_server), os.environ, str(tmp_path / "state"), lambda: None)
    owner = Owner(tmp_path / "state", WatchedPackage(Role.SERVER, str(python_server)), client=client)
    await owner.authority.launched()
    (python_server / "main.py").write_text("VALUE = 2\n")
    assert await owner.check() == DUE
    await owner.authority.close()

    # when somebody goes on telling and asking
    owner.authority.connected()
    with pytest.raises(AuthorityProblem, match="The proxy is ending"):
        await owner.check()
    await owner.authority.ready_to_restart()
    await owner.authority.mcp_ready()

    # then that leads to nothing
    assert owner.restarts == 0
    assert not client.running
    assert running_in(python_server) == []


async def test_a_start_that_is_told_while_it_closes_is_not_broken_off(python_server: Path) -> None:
    owner = owner_of_python(python_server)
    server = owner.authority._server
    assert server
    disk, find = threading.Event(), server.fingerprint._find

    def slow_find() -> Sources:
        disk.wait(30)
        return find()

    server.fingerprint._find = slow_find
    launching = asyncio.ensure_future(owner.authority.launched())
    await until(lambda: bool(server.disk._looks._running))

    await owner.authority.close()
    disk.set()

    await launching  # and raises nothing


async def test_a_restart_that_fails_in_an_unexpected_way_is_one_that_did_not_work(python_server: Path) -> None:
    owner = owner_of_python(python_server)
    await owner.start()
    (python_server / "main.py").write_text("VALUE = 2\n")
    await owner.check()
    owner.defect = ValueError("a defect")

    restarted = await owner.authority.ready_to_restart()

    assert restarted == RestartResult(False, "The restart failed: a defect.")
    assert owner.server["sha256"]["running"] is None
    await owner.authority.close()


# --- the extension and its client ---------------------------------------------------------------------------------

CLIENT = (
    "import signal, sys\n"
    "open('builds.txt', 'a').write('client ' + open('dist/main.js').read() + '\\n')\n"
    "print('ready', flush=True)\n"
    "signal.pause()\n"
)


@asynccontextmanager
async def owner_of_both(
    tmp_path: Path, programs: Path, *, compiled: bool = True
) -> AsyncIterator[tuple[Owner, Project, Project]]:
    server = Project(tmp_path / "server", programs)
    extension = Project(tmp_path / "extension", programs, script="compile")
    if compiled:
        (extension.root / "dist").mkdir()
        (extension.root / "dist" / "main.js").write_text("one")
    (server.root / "builds.txt").touch()
    (extension.root / "builds.txt").symlink_to(server.root / "builds.txt")  # one journal for both
    command = ClientCommand(sys.executable, ("-ISc", CLIENT), ready_pattern="^ready$")
    state = tmp_path / "state"
    limits = ClientLimits(look_seconds=0.01)
    client = ClientApp(command, str(extension.root), os.environ, str(state), lambda: None, limits)
    packages = WatchedPackage(Role.SERVER, str(server.root)), WatchedPackage(Role.EXTENSION, str(extension.root))
    owner = Owner(state, *packages, environ=server.environ, client=client)
    try:
        await owner.start()
        await until(lambda: client.ready)
        yield owner, server, extension
    finally:
        await owner.authority.close()


async def test_a_changed_extension_is_compiled_its_client_reloaded_and_the_server_left_alone(
    tmp_path: Path, programs: Path
) -> None:
    async with owner_of_both(tmp_path, programs) as (owner, server, extension):
        extension.save("two")

        result = await owner.check()

        assert result == CheckResult(extension_changed=True, extension_rebuilt=True, client_reloaded=True)
        assert server.noted() == ["client one", "begin two", "end two", "client two"]
        assert await owner.check() == UNCHANGED


async def test_an_extension_that_was_never_compiled_is_when_its_client_breaks_down(
    tmp_path: Path, programs: Path
) -> None:
    # when a fresh clone is started
    async with owner_of_both(tmp_path, programs, compiled=False) as (owner, server, _extension):
        # then its client is there, without a call
        assert server.noted() == ["begin one", "end one", "client one"]
        assert (await owner.authority.mcp_ready())["client"]["ready"]  # and the check is over that has seen to it
        assert await owner.check() == UNCHANGED


async def test_a_client_that_breaks_down_all_the_same_is_left_with_its_problem(tmp_path: Path, programs: Path) -> None:
    extension = Project(tmp_path / "extension", programs, script="compile")
    command = ClientCommand(sys.executable, ("-ISc", "raise SystemExit('no display')"), ready_pattern="^ready$")
    client = ClientApp(command, str(extension.root), os.environ, str(tmp_path / "state"), lambda: None)
    package = WatchedPackage(Role.EXTENSION, str(extension.root))
    owner = Owner(tmp_path / "state", package, environ=extension.environ, client=client)
    await owner.start()

    for _ in range(2):
        assert "no display" in (await owner.authority.mcp_ready())["client"]["problem"]
    assert await owner.check() == UNCHANGED

    assert extension.noted() == ["begin one", "end one"]
    await owner.authority.close()


async def test_where_both_have_changed_the_extension_comes_first(tmp_path: Path, programs: Path) -> None:
    async with owner_of_both(tmp_path, programs) as (owner, server, extension):
        extension.save("extension")
        server.save("server")

        result = await owner.check()

        assert result == DUE.replace(extension_changed=True, extension_rebuilt=True, client_reloaded=True)
        assert server.noted()[1:] == [
            "begin extension",
            "end extension",
            "client extension",
            "begin server",
            "end server",
        ]


async def test_an_extension_that_does_not_compile_leaves_its_client_and_the_server_is_still_reloaded(
    tmp_path: Path, programs: Path
) -> None:
    async with owner_of_both(tmp_path, programs) as (owner, server, extension):
        extension.save("broken")
        server.save("two")

        result = await owner.check()

        assert result.extension_changed
        assert not result.extension_rebuilt
        assert result.extension_build_error
        assert "there is an error" in result.extension_build_error
        assert (result.client_reloaded, result.restart_due) == (False, True)
        assert server.noted().count("client one") == 1


async def test_a_server_that_is_started_again_hides_no_change_of_the_extension(
    tmp_path: Path, python_server: Path
) -> None:
    extension = tmp_path / "extension"
    extension.mkdir()
    (extension / "main.py").write_text("VALUE = 1\n")
    packages = WatchedPackage(Role.SERVER, str(python_server)), WatchedPackage(Role.EXTENSION, str(extension))
    owner = Owner(tmp_path / "state", *packages)
    await owner.start()
    (extension / "main.py").write_text("VALUE = 2\n")

    await owner.start()  # it crashed

    assert (await owner.check()).extension_changed
    assert await owner.check() == UNCHANGED
    await owner.authority.close()


async def test_the_client_ends_with_its_owner(tmp_path: Path, programs: Path) -> None:
    async with owner_of_both(tmp_path, programs) as (_, _, extension):
        assert running_in(extension.root)

    assert running_in(extension.root) == []


async def test_one_root_for_both_roles_is_built_in_both_ways(tmp_path: Path, programs: Path) -> None:
    both = Project(tmp_path / "both", programs)
    both.describe({"build": "echo build >> builds.txt", "compile": "echo compile >> builds.txt"})
    packages = [WatchedPackage(role, str(both.root)) for role in Role]
    owner = Owner(tmp_path / "state", *packages, environ=both.environ)
    await owner.start()
    both.save("two")

    result = await owner.check()

    assert result == DUE.replace(extension_changed=True, extension_rebuilt=True)
    assert both.noted() == ["compile", "build"]
    await owner.authority.close()


async def test_ready_means_that_the_server_answers_and_the_client_is_there(tmp_path: Path, programs: Path) -> None:
    async with owner_of_both(tmp_path, programs) as (owner, _, _):
        ready = await owner.authority.mcp_ready()

        assert (ready["ready"], ready["client"]["ready"]) == (True, True)


# --- what others may know -----------------------------------------------------------------------------------------


async def test_the_status_tells_what_was_done(project: Project) -> None:
    async with owner_of(project) as owner:
        idle = owner.authority.status()
        project.hold_builds()
        project.save("two")
        reloading = asyncio.ensure_future(owner.reload())
        await until(lambda: project.noted() == ["begin two"])
        building = owner.authority.status()
        project.let_builds_go()
        await reloading
        await owner.check()
        done = owner.authority.status()

    assert (idle["state"], building["state"], done["state"]) == ("idle", "building", "idle")
    assert (done["checks"], done["builds"], done["restarts"]) == (2, 1, 1)
    assert done["strategy"] == "restart"
    [package] = done["packages"]
    assert (package["role"], package["kind"], package["files"]) == ("server", "JavaScript", 1)
    assert package["watched"] is available(sys.platform), "in the temp folder of a usual system"
    assert (package["root"], package["build"], package["problems"]) == (str(project.root), "npm run build", [])
    assert len(set(package["sha256"].values())) == 1
    assert done["lastBuild"]["ok"] is True
    assert done["lastCheck"]["result"]["mcpChanged"] is False
    assert done["lastRestart"]["lists"] == "same"
    [reload] = done["history"]
    assert (reload["changed"], reload["build"], reload["ok"]) == (["src/main.js"], "npm run build", True)
    assert done["client"] is None
    json.dumps(done)
