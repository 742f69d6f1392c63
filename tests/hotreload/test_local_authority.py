"""The authority on real packages: real files, watchers and builds, and an owner that does as it is told."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from support.files import write
from support.waiting import until
from uno_devserver.hotreload.authority import UNCHANGED, AuthorityProblem, CheckResult, Demand, RestartResult
from uno_devserver.hotreload.client_app import ClientApp, ClientLimits
from uno_devserver.hotreload.digest_store import DigestStore
from uno_devserver.hotreload.local_authority import LocalAuthority
from uno_devserver.hotreload.package_state import BuildSettings, PackageLimits
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.workspace.config import ClientCommand, Strategy

from .projects import Project, running_in, stand_in_npm

DUE = CheckResult(server_changed=True, server_rebuilt=True)
FAILED = RestartResult(False, "It ended with exit code 1.")


class PythonServer:
    """A package that needs no build."""

    environ: Mapping[str, str] = os.environ

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = root / "main.py"
        root.mkdir()
        self.save("one")

    def save(self, content: str) -> None:
        self.source.write_text(f"VALUE = '{content}'\n")


class Owner:
    """A proxy as the authority sees it: what it starts works, unless it is told otherwise."""

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
        self.on_status: Callable[[], None] = lambda: None
        self.defect: Exception | None = None
        self.refusal = ""  # why the user's agreement does not cover the code
        self.authority = LocalAuthority(
            packages,
            BuildSettings(DigestStore(str(state)), environ, str(state), limits=limits),
            strategy=Strategy.RESTART,
            restart=self._restart,
            answers=self._answers,
            say=lambda _level, _text: None,
            status_changed=lambda: self.on_status(),
            refusal=lambda: self.refusal,
            client=client,
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.authority.close()

    @property
    def server(self) -> dict[str, Any]:
        """The first package, in the status."""
        found: dict[str, Any] = self.authority.status()["packages"][0]
        return found

    async def start(self) -> None:
        await self.authority.note_launch()
        self.authority.connected()

    async def check(self) -> CheckResult:
        return await self.authority.check(self.told.append)

    async def reload(self) -> CheckResult:
        """As the call queue does it."""
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


def owner_of(
    project: Project | PythonServer,
    role: Role = Role.SERVER,
    limits: PackageLimits | None = None,
    started: tuple[str, ...] = (),
) -> Owner:
    package = WatchedPackage(role, str(project.root), started=tuple(str(project.root / path) for path in started))
    return Owner(project.root.parent / "state", package, environ=project.environ, limits=limits)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stand_in_npm(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def project(tmp_path: Path, programs: Path) -> Project:
    return Project(tmp_path / "server", programs)


@pytest.fixture
def python_server(tmp_path: Path) -> PythonServer:
    return PythonServer(tmp_path / "python")


# What the user has not agreed to.


@pytest.mark.parametrize("role", Role)
async def test_changed_code_is_neither_built_nor_started_before_the_user_agrees(project: Project, role: Role) -> None:
    async with owner_of(project, role) as owner:
        await owner.reload()
        before, restarts = project.noted(), owner.restarts
        project.save("two")
        owner.refusal = "an add-in has been added"

        refused = [await owner.reload() for _ in range(2)]
        demanded = await owner.authority.check(owner.told.append, Demand.RESTART)
        waits = owner.authority.news()
        owner.refusal = ""
        built = project.noted()
        agreed = await owner.reload()

        assert built == before
        assert refused == [CheckResult(refusal="an add-in has been added")] * 2
        assert (demanded, waits) == (refused[0], None)
        assert (project.noted()[-1], owner.restarts) == ("end two", restarts + (role is Role.SERVER))
        assert agreed.server_rebuilt or agreed.extension_rebuilt


async def test_code_that_runs_needs_no_agreement_but_a_restart_of_it_does(python_server: PythonServer) -> None:
    async with owner_of(python_server) as owner:
        owner.refusal = "the user has not agreed to it"

        assert await owner.check() == UNCHANGED
        assert (await owner.authority.check(owner.told.append, Demand.RESTART)).refusal == owner.refusal
        owner.authority.note_refusal(owner.refusal)
        assert (await owner.check()).refusal == owner.refusal
        owner.refusal = ""
        assert await owner.check() == UNCHANGED


async def test_a_restart_that_was_refused_is_due_again_after_the_agreement(python_server: PythonServer) -> None:
    async with owner_of(python_server) as owner:
        python_server.save("two")
        owner.outcome = RestartResult(False, kept=True, refusal="an add-in has been added")
        await owner.reload()
        owner.outcome = RestartResult(True)

        assert (await owner.reload()).restart_due
        assert (owner.restarts, await owner.check()) == (2, UNCHANGED)


# Stories: what happens, and what is found after it, step by step.

RESULTS: dict[str, Callable[[CheckResult], bool]] = {
    "unchanged": lambda result: result == UNCHANGED,
    "due": lambda result: result == DUE,
    "failed": lambda result: bool(result.server_build_error) and not result.restart_due,
    "tried": lambda result: bool(result.server_digest) and result.replace(server_digest=None) == UNCHANGED,
    "old": lambda result: bool(result.server_old_output) and not result.server_changed,
    "due old": lambda result: bool(result.server_old_output) and result.restart_due,
    "any": lambda _: True,
}
OUTCOMES = {"works": RestartResult(True), "fails": FAILED, "fails in a swap": FAILED.replace(kept=True)}


class Play:
    """One proxy after the other on one package."""

    def __init__(
        self, project: Project | PythonServer, role: Role = Role.SERVER, started: tuple[str, ...] = ()
    ) -> None:
        self.project = project
        self.new_owner = partial(owner_of, project, role, started=started)
        self.owner = self.new_owner()

    async def run(self, story: str) -> None:
        try:
            for step in filter(None, (part.strip() for part in story.split("|"))):
                verb, _, rest = step.partition(" ")
                found = await getattr(self, verb)(rest)
                assert found is not False, f"{step!r}, but {found!r} in {story!r}"
        finally:
            await self.owner.authority.close()

    async def start(self, outcome: str) -> None:
        await self.owner.authority.note_launch()
        (self.owner.authority.failed if outcome == "fails" else self.owner.authority.connected)()

    async def close(self, _: str) -> None:
        await self.owner.authority.close()
        self.owner = self.new_owner()

    async def save(self, content: str) -> None:
        self.project.save(content)

    async def touch(self, _: str) -> None:
        self.project.source.touch()
        self.project.source.chmod(0o600)

    async def move(self, where: str) -> None:
        paths = self.project.root, self.project.root.with_name("elsewhere")
        os.rename(*(paths if where == "away" else reversed(paths)))

    async def restart(self, outcome: str) -> None:
        self.owner.outcome = OUTCOMES[outcome]

    async def check(self, expected: str) -> bool:
        if expected == "impossible":
            with pytest.raises(AuthorityProblem, match="There is no folder"):
                await self.owner.check()
            return True
        return RESULTS[expected](await self.owner.check())

    async def reload(self, expected: str) -> bool:
        return RESULTS[expected](await self.owner.reload())

    async def demand(self, rest: str) -> bool:
        what, _, expected = rest.partition(" ")
        return RESULTS[expected](await self.owner.authority.check(self.owner.told.append, Demand(what)))

    async def install(self, name: str) -> None:
        (self.project.root / "node_modules" / name).mkdir(parents=True)

    async def ready(self, _: str) -> bool:
        return (await self.owner.authority.ready_to_restart()).ok

    async def news(self, expected: str) -> bool:
        return self.owner.authority.news() is {"yes": True, "no": False, "unknown": None}[expected]

    async def restarts(self, count: str) -> bool:
        return self.owner.restarts == int(count)

    async def builds(self, count: str) -> bool:
        return bool(self.owner.authority.status()["builds"] == int(count))

    async def noted(self, lines: str) -> bool:
        assert isinstance(self.project, Project)
        return ", ".join(self.project.noted()) == lines

    async def put(self, content: str) -> None:
        """Write the output by hand."""
        write(self.project.root / "dist" / "main.js", content)

    async def disturb(self, how: str) -> None:
        output = self.project.root / "dist" / "main.js"
        {"mode": lambda: output.chmod(0o600), "date": output.touch, "beside": (output.parent / "x.txt").touch}[how]()

    async def remove(self, _: str) -> None:
        (self.project.root / "dist" / "main.js").unlink()

    async def scripts(self, build: str) -> None:
        assert isinstance(self.project, Project)
        self.project.describe({"build": build} if build else {})

    async def output(self, content: str) -> bool:
        return (self.project.root / "dist" / "main.js").read_text() == content


JAVASCRIPT_STORIES = {
    "where nothing has changed, nothing is built, and the next question costs nothing": (
        "start | check unchanged | news no | noted "
    ),
    "a save is news at once, and built before the answer": (
        "start | check unchanged | save two | news yes | check due | noted begin two, end two"
    ),
    "after a restart the new content is what runs": (
        "start | save two | reload due | check unchanged | news no | restarts 1 | noted begin two, end two"
    ),
    "touching, saving the same and changing modes is no change": (
        "start | check unchanged | touch | save one | check unchanged | news no"
    ),
    "a change that is taken back before the restart needs none": (
        "start | save two | check due | save one | check unchanged | ready | restarts 0"
    ),
    "output of a change that was taken back is noticed, if a crash starts it": (
        "start | save two | check due | save one | start | reload due | output one | check unchanged"
    ),
    "what was saved while no proxy ran is built at the first check": (
        "start | close | save two | start | reload due | check unchanged | close | start | check unchanged"
        " | noted begin two, end two"
    ),
    "a server that was never built is built by the next check": (
        "start fails | reload due | check unchanged | noted begin one, end one"
    ),
    "output that was deleted is built again": "start | close | start fails | reload due | noted begin one, end one",
    "content that does not start is not tried again until it changes": (
        "start | save two | restart fails | reload due | check tried | news no"
        " | save three | restart works | reload due | check unchanged | restarts 2"
    ),
    "a build that fails is not tried again by itself, and leads to no restart": (
        "start | save broken | check failed | check failed | noted begin broken | news unknown | ready | restarts 0"
    ),
    "a build that fails is tried again when an agent asks": (
        "start | save broken | check failed | demand build failed | noted begin broken, begin broken"
    ),
    "a build that fails is tried again when packages were installed": (
        "start | save broken | check failed | install left-pad | check failed | check failed"
        " | noted begin broken, begin broken"
    ),
    "a restart that an agent asks for needs no change": (
        "start | check unchanged | demand restart due | ready | restarts 1 | noted  | check unchanged"
    ),
    "a restart that an agent asks for is not lost to a later check": (
        "start | check unchanged | demand restart due | check unchanged | ready | restarts 1 | ready | restarts 1"
    ),
    "a restart that an agent asks for does not happen while the build fails": (
        "start | save broken | check failed | demand restart failed | ready | restarts 0"
    ),
    "content that did not start is started again when an agent asks": (
        "start | save two | restart fails in a swap | reload due | check tried | restart works | demand restart due"
        " | ready | restarts 2 | check unchanged"
    ),
    "a build that was mended leads to one restart": (
        "start | save broken | check failed | save two | reload due | restarts 1 | check unchanged"
    ),
    "the output of a failed build is not trusted by the next proxy": (
        "start | save broken | check failed | close | save one | start | check due"
        " | noted begin broken, begin one, end one"
    ),
}
PYTHON_STORIES = {
    "Python needs no build": "start | save two | reload due | check unchanged | restarts 1 | builds 0",
    "a server whose code could not be read when it started is started again": (
        "move away | start | move back | reload due | check unchanged | restarts 1"
    ),
    "after a swap that failed the old content runs, and is not replaced by the same again": (
        "start | save broken | restart fails in a swap | reload due | check tried | save one | check unchanged"
        " | save two | check due"
    ),
    "a server that came up by itself counts as what it was started with": (
        "start | save two | check due | start | check unchanged | ready | restarts 0"
    ),
    "a check without an answer takes back no restart that is due": (
        "start | save two | check due | move away | check impossible | move back | ready | restarts 1 | check unchanged"
    ),
    "a folder that has gone is no reason to give up what runs": (
        "start | check unchanged | move away | check impossible | move back | check unchanged"
    ),
}


OUTPUT_STORIES = {
    "an output that was never seen before is built once, and is what the build would write": (
        "put one | start | reload unchanged | check unchanged | restarts 0 | noted begin one, end one"
        " | close | start | reload unchanged | noted begin one, end one"
    ),
    "an output that was never seen before is built once, and was another one": (
        "put zero | start | reload due | output one | check unchanged | restarts 1"
    ),
    "an output that others have built while no proxy ran is built over": (
        "put one | start | reload unchanged | close | put two | start | reload due | output one | check unchanged"
    ),
    "an output that others have built is built over": (
        "put one | start | reload unchanged | put two | news yes | reload unchanged | output one | check unchanged"
        " | news no | restarts 0"
    ),
    "an output that a crash has started is built over": (
        "put one | start | reload unchanged | put two | start | reload due | output one | check unchanged"
    ),
    "an output that was deleted before the server died is built again": (
        "put one | start | reload unchanged | remove | start fails | reload due | output one | check unchanged"
    ),
    "a build that does not write what is started fails once": (
        "scripts true | put one | start | check unchanged | remove | start fails | check failed | check failed"
        " | builds 2 | put one | start | check unchanged"
    ),
    "a build that no longer writes what is started is noticed": (
        "put one | start | reload unchanged | scripts true | save two | check due old"
    ),
}
HAND_BUILT_STORIES = {
    "what is built after an edit is current": (
        "save two | put two | reload due | check unchanged | restarts 1 | close | start | check unchanged"
    ),
    "what is edited after a build is not": "save two | put two | save three | reload due old | check old",
    "what is built after a restart is started": "save two | reload due old | put two | reload due | check unchanged",
    "what is built the same again is current": "save two | reload due old | put one | reload unchanged | restarts 1",
    "its mode, its date and the files beside it mean nothing": (
        "save two | reload due old | disturb mode | check old | disturb date | check old | disturb beside | check old"
    ),
    "an output that has changed alone is started": "put two | news yes | reload due | check unchanged | restarts 1",
    "half of a build is started, and then the other half": (
        "save two | reload due old | put half | reload due | put two | reload due | check unchanged | restarts 3"
    ),
    "what was built and edited while no proxy ran is not believed": (
        "close | save two | put two | save three | start | check old | put three | reload due | check unchanged"
    ),
}


@pytest.mark.parametrize("story", OUTPUT_STORIES.values(), ids=OUTPUT_STORIES)
async def test_stories_of_what_is_started_with_a_build(project: Project, story: str) -> None:
    await Play(project, started=("dist/main.js",)).run(story)


@pytest.mark.skipif(sys.platform != "linux", reason="only inotify tells the order of writes")
@pytest.mark.parametrize("story", HAND_BUILT_STORIES.values(), ids=HAND_BUILT_STORIES)
async def test_stories_of_what_is_started_without_a_build(project: Project, story: str) -> None:
    await Play(project, started=("dist/main.js",)).run(f"scripts  | put one | start | check unchanged | {story}")


@pytest.mark.parametrize("story", JAVASCRIPT_STORIES.values(), ids=JAVASCRIPT_STORIES)
async def test_stories_of_a_server_with_a_build(project: Project, story: str) -> None:
    await Play(project).run(story)


@pytest.mark.parametrize("story", PYTHON_STORIES.values(), ids=PYTHON_STORIES)
async def test_stories_of_a_server_without_a_build(python_server: PythonServer, story: str) -> None:
    await Play(python_server).run(story)


@pytest.mark.parametrize(("edit", "role"), [("two", Role.SERVER), ("broken", Role.SERVER), ("broken", Role.EXTENSION)])
async def test_output_of_a_change_that_was_taken_back_is_built_over_once(
    project: Project, edit: str, role: Role
) -> None:
    await Play(project, role).run(
        f"start | restart fails in a swap | save {edit} | reload any | save one | check unchanged | output one"
        " | check unchanged | news no | builds 2 | start | check unchanged"
    )
    assert project.noted()[-2:] == ["begin one", "end one"]
    assert project.noted().count("end one") == 1


async def test_a_home_that_cannot_be_written_prevents_nothing(project: Project, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")

    await Play(project).run("start | save two | reload due | check unchanged | noted begin two, end two")


@pytest.mark.parametrize(
    ("build", "limits", "most"),
    [
        ("echo '// generated' > src/generated.js", PackageLimits(quiet_seconds=0.05), 2),
        (
            "node -e \"require('fs').writeFileSync('src/stamp.js', '// ' + process.hrtime.bigint())\"",
            PackageLimits(most_cancels=1, quiet_seconds=0.05),
            4,
        ),
    ],
    ids=["the same each time", "something else each time"],
)
async def test_a_build_that_writes_one_of_its_sources_is_not_repeated_for_ever(
    project: Project, build: str, limits: PackageLimits, most: int
) -> None:
    project.describe({"build": f"node tools/build.txt && {build}"})
    async with owner_of(project, limits=limits) as owner:
        project.save("two")

        assert await owner.reload() == DUE

        assert await owner.check() == UNCHANGED
        assert 1 <= project.noted().count("end two") <= most


async def test_compiled_copies_of_all_that_was_saved_before_a_restart_is_due_are_gone(
    python_server: PythonServer,
) -> None:
    # given two modules with compiled copies; the second is saved when the check has seen the first
    (python_server.root / "other.py").write_text("VALUE = 1\n")
    (python_server.root / "__pycache__").mkdir()
    copies = [python_server.root / "__pycache__" / f"{name}.cpython-311.pyc" for name in ("main", "other")]
    for copy in copies:
        copy.touch()
    async with owner_of(python_server) as owner:
        fingerprint = owner.authority._packages[0].fingerprint
        digest, saves = fingerprint.digest, ["main.py", "other.py"]

        def save_and_digest() -> str:
            (python_server.root / saves.pop(0)).write_text("VALUE = 2\n")
            return digest()

        fingerprint.digest = save_and_digest  # type: ignore[method-assign]

        assert await owner.check() == DUE

        assert [copy.exists() for copy in copies] == [False, False]


# Failures.


async def test_a_build_that_fails_is_told_whole(project: Project) -> None:
    async with owner_of(project) as owner:
        project.save("broken")

        result = await owner.check()

        assert (result.server_changed, result.server_rebuilt) == (True, False)
        assert "there is an error\nand one line on stderr" in (result.server_build_error or "")
        assert result.server_digest == owner.server["sha256"]["now"]


async def test_a_server_that_was_started_after_a_failed_build_may_run_what_that_wrote(project: Project) -> None:
    async with owner_of(project) as owner:
        await owner.reload()
        project.save("broken")
        serving = await owner.check()

        await owner.start()  # after a crash
        crashed = await owner.check()
    async with owner_of(project) as another:
        new_session = await another.check()
        project.save("two")
        await another.reload()
        project.save("broken again")
        again = await another.check()

    assert [each.server_of_failed_build for each in (serving, crashed, new_session, again)] == [
        False,
        True,
        True,
        False,
    ]


async def test_where_the_old_content_cannot_be_built_any_more_that_is_a_failed_build(project: Project) -> None:
    async with owner_of(project) as owner:
        owner.outcome = FAILED.replace(kept=True)
        project.save("two")
        await owner.reload()
        project.describe({"build": "node tools/missing.txt"})
        project.save("one")

        result = await owner.check()

        assert "missing.txt" in (result.server_build_error or "")
        assert not result.restart_due
        [failure] = owner.authority.status()["failing"]
        assert failure["step"] == "build"


async def test_a_manager_that_is_missing_is_told_with_what_to_do_until_it_is_installed(
    project: Project, tmp_path: Path
) -> None:
    (project.root / "package-lock.json").unlink()
    (project.root / "pnpm-lock.yaml").touch()
    project.environ["PATH"] = str(project.root)
    async with owner_of(project) as owner:
        project.save("two")

        error = (await owner.check()).server_build_error

        assert (error or "").startswith("pnpm was not found on PATH. Install it")

        manager = write(tmp_path / "programs" / "pnpm", "#!/bin/sh\n")
        manager.chmod(0o755)
        project.environ["PATH"] += f":{manager.parent}"
        assert (await owner.check()).restart_due


@pytest.mark.parametrize(("defect", "told"), [(ValueError("a defect"), "a defect"), (TimeoutError(), "TimeoutError")])
async def test_a_restart_that_fails_in_an_unexpected_way_is_one_that_did_not_work(
    python_server: PythonServer, defect: Exception, told: str
) -> None:
    async with owner_of(python_server) as owner:
        python_server.save("two")
        await owner.check()
        owner.defect = defect

        restarted = await owner.authority.ready_to_restart()

        assert restarted == RestartResult(False, f"The restart failed: {told}.")
        assert owner.server["sha256"]["running"] is None


@pytest.mark.parametrize(("has_build", "looks"), [(True, 1), (False, 0), (False, 1)])
async def test_what_failed_is_told_as_over_once_it_was_taken_back(
    tmp_path: Path, programs: Path, has_build: bool, looks: int
) -> None:
    """A build or a start failed; `looks`: the checks between the failure and its end."""
    package = Project(tmp_path / "server", programs) if has_build else PythonServer(tmp_path / "server")
    async with owner_of(package) as owner:
        owner.outcome = FAILED.replace(kept=True)
        told: list[bool] = []  # whether something fails, at each change of the status
        owner.on_status = lambda: told.append(bool(owner.authority.status()["failing"]))
        package.save("broken")
        await owner.reload()
        for _ in range(looks):
            await owner.check()
        assert told[-1]

        package.save("one")
        assert await owner.check() == UNCHANGED

        assert not told[-1]


# The digests that are stored.


def stored(folder: Path) -> dict[str, str]:
    """Of the only package."""
    [path] = (folder / "state" / "hotreload").iterdir()
    digests: dict[str, str]
    [digests] = json.loads(path.read_text())["packages"].values()
    return digests


async def test_at_first_sight_the_content_is_stored_without_a_build_or_a_restart(
    project: Project, tmp_path: Path
) -> None:
    async with owner_of(project) as owner:
        assert await owner.check() == UNCHANGED
        running = owner.server["sha256"]["running"]

    assert stored(tmp_path) == {"sha256": running}
    assert project.noted() == []


async def test_nothing_is_stored_before_the_server_works(project: Project, tmp_path: Path) -> None:
    async with owner_of(project) as owner:
        await until(lambda: owner.server["sha256"]["kept"] is not None)
        before = stored(tmp_path)["sha256"]
        project.save("two")
        owner.outcome = FAILED
        await owner.reload()

        assert stored(tmp_path)["sha256"] == before
        owner.outcome = RestartResult(True)
        project.save("three")
        await owner.reload()
        kept = stored(tmp_path)
        assert (kept["sha256"], kept.get("built")) == (owner.server["sha256"]["now"], None)


async def test_a_digest_that_is_known_to_run_counts_even_if_others_have_built_since(project: Project) -> None:
    async with owner_of(project) as first, owner_of(project) as second:
        running = second.authority.content
        project.save("two")
        assert await first.reload() == DUE

    async with owner_of(project) as again:
        await again.authority.note_launch(running=running)
        again.authority.connected()

        assert await again.check() == DUE


@pytest.mark.parametrize(("seconds", "found"), [(60, UNCHANGED), (-1, DUE)])
async def test_what_another_process_built_after_the_start_of_a_server_does_not_count_as_what_it_runs(
    project: Project, seconds: int, found: CheckResult
) -> None:
    async with owner_of(project) as other:
        project.save("two")
        assert await other.reload() == DUE

    again = owner_of(project)
    await again.authority.note_launch(started_at=time.time() + seconds)
    again.authority.connected()

    assert await again.reload() == found
    assert await again.check() == UNCHANGED
    await again.authority.close()


@pytest.mark.parametrize(("seconds", "found"), [(60, UNCHANGED), (-1, DUE)])
async def test_code_that_is_read_after_a_start_has_gone_on_does_not_count_as_running(
    python_server: PythonServer, seconds: int, found: CheckResult
) -> None:
    owner = owner_of(python_server)
    await owner.authority.note_launch(deadline=time.monotonic() + seconds)
    owner.authority.connected()

    assert await owner.reload() == found
    assert await owner.check() == UNCHANGED
    await owner.authority.close()


# Starts that are over before their code is read.


async def settle_during_launch(owner: Owner, settle: Callable[[], None]) -> None:
    launching = asyncio.ensure_future(owner.authority.note_launch())
    await asyncio.sleep(0)  # it has begun
    settle()
    await launching


async def test_a_server_that_fails_faster_than_its_code_is_read_is_built_too(project: Project) -> None:
    owner = owner_of(project)
    await settle_during_launch(owner, owner.authority.failed)

    assert await owner.reload() == DUE
    assert await owner.check() == UNCHANGED
    await owner.authority.close()


async def test_a_server_that_works_before_its_code_is_read_counts_as_what_was_read(python_server: PythonServer) -> None:
    owner = owner_of(python_server)
    await settle_during_launch(owner, owner.authority.connected)

    assert owner.server["sha256"]["running"] == owner.server["sha256"]["now"] is not None
    await owner.authority.close()


# During a build.


@asynccontextmanager
async def building(owner: Owner, project: Project, content: str) -> AsyncIterator[asyncio.Future[CheckResult]]:
    """A check whose build has begun; it may go on at the end of the block."""
    project.hold_builds()
    project.save(content)
    checking = asyncio.ensure_future(owner.check())
    await until(lambda: project.noted()[-1:] == [f"begin {content}"])
    yield checking
    project.let_builds_go()


@pytest.mark.parametrize("watched", [True, False])
async def test_a_save_during_a_build_cancels_it_and_only_the_newest_content_is_built(
    project: Project, monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    monkeypatch.setattr("uno_devserver.hotreload.fingerprint.HAS_INOTIFY", watched)
    async with owner_of(project) as owner:
        async with building(owner, project, "two") as checking:
            project.save("three")
            await until(lambda: project.noted() == ["begin two", "begin three"])

        assert await checking == DUE
        assert project.noted() == ["begin two", "begin three", "end three"]
        await owner.authority.ready_to_restart()
        assert await owner.check() == UNCHANGED


async def test_the_time_of_a_build_is_that_of_the_last_run_without_those_that_were_cancelled(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0])
    monkeypatch.setattr("uno_devserver.hotreload.package_state.time", clock)
    async with owner_of(project) as owner:
        async with building(owner, project, "two") as checking:
            passed[0] = 3600.0
            project.save("three")
            await until(lambda: project.noted() == ["begin two", "begin three"])
        await checking

        assert 0 < owner.authority.status()["lastBuild"]["seconds"] < 3600


@pytest.mark.parametrize("role", Role)
async def test_a_change_that_is_taken_back_while_it_is_built_is_none(project: Project, role: Role) -> None:
    async with owner_of(project, role) as owner:
        async with building(owner, project, "two") as checking:
            project.save("one")
            await until(lambda: project.noted() == ["begin two", "begin one"])

        assert await checking == UNCHANGED
        assert project.noted()[-1] == "end one"


async def test_whoever_waits_for_a_build_hears_of_it_again_and_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uno_devserver.hotreload.local_authority.REPEAT_SECONDS", 0.05)
    async with owner_of(project) as owner:
        async with building(owner, project, "two") as checking:
            # On a busy machine the first message is repeated, too.
            assert [said for said in owner.told if not said.endswith(" s)")] == [
                "The code of the server has changed: src/main.js",
                "npm run build runs for the server",
            ]
            await until(lambda: sum("npm run build runs for the server (" in said for said in owner.told) >= 2)

        assert await checking == DUE


async def test_touching_a_source_during_a_build_does_not_cancel_it(project: Project) -> None:
    async with owner_of(project) as owner:
        fingerprint = owner.authority._packages[0].fingerprint
        async with building(owner, project, "two") as checking:
            project.source.touch()
            project.save("two")
            assert fingerprint.news() is not False
            await until(lambda: fingerprint.news() is False)

        assert await checking == DUE
        assert project.noted() == ["begin two", "end two"]


async def test_who_is_ready_to_restart_while_newer_content_is_built_gets_that(project: Project) -> None:
    # given content that is ready to be started, and a build of newer content for another caller
    async with owner_of(project) as owner:
        project.save("two")
        assert await owner.check() == DUE
        async with building(owner, project, "three") as checking:
            # when the first one has no calls left
            restarting = asyncio.ensure_future(owner.authority.ready_to_restart())
            await asyncio.sleep(0)  # it has asked
            before = owner.restarts

        # then what is being written is not started
        assert (before, await restarting, await checking) == (0, owner.outcome, DUE)
        assert (await owner.authority.ready_to_restart()).ok
        assert owner.restarts == 1
        assert await owner.check() == UNCHANGED
        assert project.noted()[-1] == "end three"


async def test_a_check_goes_on_when_the_one_who_asked_for_it_is_cancelled(project: Project) -> None:
    async with owner_of(project) as owner:
        async with building(owner, project, "two") as first:
            second = asyncio.ensure_future(owner.check())
            await asyncio.sleep(0)  # it has joined
            first.cancel()
            await asyncio.wait([first])

        assert await second == DUE
        assert project.noted() == ["begin two", "end two"]


async def test_closing_ends_a_build_and_tells_those_who_wait(project: Project) -> None:
    async with owner_of(project) as owner, building(owner, project, "two") as checking:
        assert running_in(project.root)

        await owner.authority.close()

        assert running_in(project.root) == []
        with pytest.raises(AuthorityProblem, match="The proxy is ending"):
            await checking


async def test_sources_that_change_for_ever_do_not_hold_calls_for_ever(project: Project) -> None:
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
            result = await owner.check()
        finally:
            stop.set()
            saver.join()

        # then it has ended, and the next one looks again
        assert result == DUE
        assert owner.authority.news() is not False
        await owner.authority.ready_to_restart()
        assert await owner.reload() == DUE
        assert await owner.check() == UNCHANGED


# During a restart.


@asynccontextmanager
async def restarting(owner: Owner, package: Project | PythonServer) -> AsyncIterator[asyncio.Future[RestartResult]]:
    """A restart that has begun, with the content `two`; it may go on at the end of the block."""
    package.save("two")
    await owner.check()
    owner.gate.clear()
    restart = asyncio.ensure_future(owner.authority.ready_to_restart())
    await until(lambda: owner.restarts == 1)
    yield restart
    owner.gate.set()
    await asyncio.wait([restart])


async def test_a_save_during_a_restart_is_seen_by_the_next_check(project: Project) -> None:
    async with owner_of(project) as owner:
        async with restarting(owner, project):
            project.save("three")

        assert await owner.reload() == DUE
        assert await owner.check() == UNCHANGED
        assert project.noted()[-1] == "end three"


async def test_who_asks_during_a_restart_is_told_to_join_it(python_server: PythonServer) -> None:
    async with owner_of(python_server) as owner:
        async with restarting(owner, python_server) as restart:
            assert await owner.check() == DUE
            assert owner.authority.status()["state"] == "restarting"
            joining = asyncio.ensure_future(owner.authority.ready_to_restart())

        assert await joining == await restart
        assert owner.restarts == 1


async def test_an_attempt_that_fails_during_a_restart_decides_nothing(python_server: PythonServer) -> None:
    async with owner_of(python_server) as owner:
        async with restarting(owner, python_server) as restart:
            owner.authority.failed()

        assert (await restart).ok
        assert owner.server["sha256"]["running"] == owner.server["sha256"]["now"]
        assert await owner.check() == UNCHANGED


# Several callers.


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


@pytest.mark.parametrize("extension_fails", [False, True])
async def test_who_joins_a_check_after_a_save_that_it_has_not_seen_gets_another_one(
    python_server: PythonServer, project: Project, extension_fails: bool
) -> None:
    server = WatchedPackage(Role.SERVER, str(python_server.root))
    extension = WatchedPackage(Role.EXTENSION, str(project.root))
    state = python_server.root.parent / "state"
    async with Owner(state, server, *[extension][:extension_fails], environ=project.environ) as owner:
        if extension_fails:
            project.save("broken")
            assert (await owner.check()).extension_build_error
        # given a check that has read the sources, and has not answered yet
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

        # when a source is saved, and another caller asks
        python_server.save("two")
        second = asyncio.ensure_future(owner.check())
        await asyncio.sleep(0)  # it has asked
        may_answer.set()

        # then that one hears of it
        assert [(await first).restart_due, (await second).restart_due] == [False, True]


async def test_what_a_check_finds_says_nothing_of_a_start_that_it_has_not_seen(python_server: PythonServer) -> None:
    async with owner_of(python_server) as owner:
        # given a server that is started while a check reads its code
        fingerprint, loop = owner.authority._packages[0].fingerprint, asyncio.get_running_loop()
        digest = fingerprint.digest

        def digest_during_a_start() -> str:
            loop.call_soon_threadsafe(owner.authority.connected)
            return digest()

        fingerprint.digest = digest_during_a_start  # type: ignore[method-assign]
        assert await owner.check() == UNCHANGED

        # then only another check can tell what that one runs
        assert owner.authority.news() is None


TWO_PROXIES = """
import asyncio, os, sys
from pathlib import Path
from hotreload.test_local_authority import Owner
from uno_devserver.hotreload.watched_package import WatchedPackage, Role

async def main(root, path):
    owner = Owner(Path(root).parent / "state", WatchedPackage(Role.SERVER, root), environ={"PATH": path, "HOME": root})
    await owner.start()
    owner.outcome = owner.outcome.replace(ok=False, kept=True)
    print("started", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        result = await owner.reload()
        print(result.restart_due, owner.restarts, (await owner.check()).server_changed, flush=True)
    await owner.authority.close()

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def two_proxies(project: Project) -> Iterator[Callable[[], list[str]]]:
    """Two processes that run the same server, each without success. Calling it asks both at the same time."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    arguments = [sys.executable, "-c", TWO_PROXIES, str(project.root), project.environ["PATH"]]
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
    with two_proxies(project) as ask:
        project.save("two")
        assert ask() == ["True 1 False\n"] * 2
        assert project.noted() == ["begin two", "end two"]

        project.save("one")  # it is taken back: the output is built over, once
        assert ask() == ["False 1 False\n"] * 2
        assert project.noted() == ["begin two", "end two", "begin one", "end one"]


async def test_what_one_proxy_has_built_none_of_the_others_builds_again(project: Project) -> None:
    """Neither what was there before the first of them, nor an edit; each restarts its own server."""
    started = ("dist/main.js",)
    write(project.root / "dist/main.js", "zero")
    async with (
        owner_of(project, started=started) as first,
        owner_of(project, started=started) as second,
        owner_of(project, started=started) as third,
    ):
        for content in ("one", "two", "one"):
            project.save(content)
            before = len(project.noted())
            for owner in (first, second, third):  # the others do not wait for the restart of the first
                assert await owner.check() == DUE
            for owner in (first, second, third):
                assert (await owner.authority.ready_to_restart()).ok
                assert await owner.check() == UNCHANGED

            assert project.noted()[before:] == [f"begin {content}", f"end {content}"]
        assert [owner.restarts for owner in (first, second, third)] == [3, 3, 3]


@pytest.mark.parametrize("repository", [True, False])
async def test_what_was_built_for_one_workspace_is_not_built_for_another(
    project: Project, tmp_path: Path, repository: bool
) -> None:
    if repository:
        (tmp_path / ".git").mkdir()
    output = write(project.root / "dist/main.js", "zero")
    packages = [
        WatchedPackage(Role.SERVER, str(project.root), workspace=str(workspace), started=(str(output),))
        for workspace in (tmp_path / "other", project.root)
    ]
    first, second = (Owner(tmp_path / "state", package, environ=project.environ) for package in packages)
    async with first:
        assert await first.reload() == DUE

    async with second:
        assert await second.check() == UNCHANGED

    assert project.noted() == ["begin one", "end one"]


async def test_workspaces_in_which_other_files_count_do_not_build_in_turn(project: Project, tmp_path: Path) -> None:
    more = write(project.root / "more.txt", "")
    whole = WatchedPackage(Role.SERVER, str(project.root), started=(str(project.root / "dist/main.js"),))
    packages = (whole, whole.replace(include=(more.name,)))
    first, second = (Owner(tmp_path / "state", package, environ=project.environ) for package in packages)
    async with first, second:
        project.save("two")
        for _ in range(3):
            for owner in (first, second):
                await owner.reload()

    assert project.noted() == ["begin two", "end two"] * 2


async def test_a_build_of_another_process_that_does_not_end_is_told_and_none_runs_beside_it(project: Project) -> None:
    async with owner_of(project, limits=PackageLimits(lock_seconds=0.05)) as owner:
        lock = DigestStore(str(project.root.parent / "state")).build_lock(str(project.root))
        assert lock.acquire(0, lambda _holder: None)
        project.save("two")

        result = await owner.check()
        lock.release()

        assert (result.server_build_error or "").startswith("This call waited 0.")
        assert project.noted() == []
        assert await owner.check() == DUE


# A slow disk, and the end.


def slow_disk(owner: Owner) -> threading.Event:
    """Let no source be listed until the event is set."""
    fingerprint, disk = owner.authority._packages[0].fingerprint, threading.Event()
    find = fingerprint._find
    fingerprint._find = lambda: (disk.wait(30), find())[1]
    return disk


async def test_sources_that_take_too_long_to_read_are_no_answer_and_then_at_once(python_server: PythonServer) -> None:
    async with owner_of(python_server, limits=PackageLimits(read_seconds=0.05)) as owner:
        await owner.check()
        disk, digest = slow_disk(owner), owner.authority._packages[0].disk
        (python_server.root / "new.py").write_text("VALUE = 3\n")

        with pytest.raises(AuthorityProblem, match="takes longer than"):
            await owner.check()
        with pytest.raises(AuthorityProblem, match="has not finished yet"):
            await owner.check()

        disk.set()
        await until(lambda: digest._overdue is not None and digest._overdue.done())
        assert await owner.check() == DUE


async def test_a_start_that_is_told_while_it_closes_is_not_broken_off(python_server: PythonServer) -> None:
    owner = owner_of(python_server)
    disk = slow_disk(owner)
    launching = asyncio.ensure_future(owner.authority.note_launch())
    await until(lambda: bool(owner.authority._packages[0].disk._reads._running))

    await owner.authority.close()
    disk.set()

    await launching  # and raises nothing


async def test_nothing_begins_any_more_once_it_is_closed(tmp_path: Path, python_server: PythonServer) -> None:
    # given an authority that is closed while a change waits for its restart, and its server for its client
    client = client_app("import signal; signal.pause()", python_server.root)
    owner = Owner(tmp_path / "state", WatchedPackage(Role.SERVER, str(python_server.root)), client=client)
    await owner.authority.note_launch()
    python_server.save("two")
    assert await owner.check() == DUE
    await owner.authority.close()

    # when reports and requests go on
    owner.authority.connected()
    with pytest.raises(AuthorityProblem, match="The proxy is ending"):
        await owner.check()
    assert not (await owner.authority.ready_to_restart()).ok
    await owner.authority.mcp_ready()

    # then that leads to nothing
    assert owner.restarts == 0
    assert not client.running
    assert running_in(python_server.root) == []


# The extension and its client.

CLIENT = (
    "import signal, sys\n"
    "open('builds.txt', 'a').write('client ' + open('dist/main.js').read() + '\\n')\n"
    "print('ready', flush=True)\n"
    "signal.pause()\n"
)


def client_app(code: str, folder: Path) -> ClientApp:
    command = ClientCommand(sys.executable, ("-ISc", code), ready_pattern="^ready$")
    limits = ClientLimits(look_seconds=0.01)
    return ClientApp(command, str(folder), os.environ, str(folder.parent / "state"), lambda: None, limits)


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
    client = client_app(CLIENT, extension.root)
    packages = WatchedPackage(Role.SERVER, str(server.root)), WatchedPackage(Role.EXTENSION, str(extension.root))
    async with Owner(tmp_path / "state", *packages, environ=server.environ, client=client) as owner:
        await until(lambda: client.ready)
        yield owner, server, extension


async def test_a_changed_extension_is_compiled_its_client_reloaded_and_the_server_left_alone(
    tmp_path: Path, programs: Path
) -> None:
    async with owner_of_both(tmp_path, programs) as (owner, server, extension):
        ready = await owner.authority.mcp_ready()
        assert (ready["ready"], ready["client"]["ready"]) == (True, True)
        extension.save("two")

        result = await owner.check()

        assert result == CheckResult(extension_changed=True, extension_rebuilt=True, client_reloaded=True)
        assert server.noted() == ["client one", "begin two", "end two", "client two"]
        assert await owner.check() == UNCHANGED
        assert running_in(extension.root)
    assert running_in(extension.root) == [], "the client ends with its owner"


async def test_an_extension_that_was_never_compiled_is_when_its_client_breaks_down(
    tmp_path: Path, programs: Path
) -> None:
    async with owner_of_both(tmp_path, programs, compiled=False) as (owner, server, _extension):
        assert server.noted() == ["begin one", "end one", "client one"], "without a call"
        assert (await owner.authority.mcp_ready())["client"]["ready"]  # and the check is over that has seen to it
        assert await owner.check() == UNCHANGED


async def test_a_client_that_breaks_down_all_the_same_is_left_with_its_problem(tmp_path: Path, programs: Path) -> None:
    extension = Project(tmp_path / "extension", programs, script="compile")
    client = client_app("raise SystemExit('no display')", extension.root)
    package = WatchedPackage(Role.EXTENSION, str(extension.root))
    async with Owner(tmp_path / "state", package, environ=extension.environ, client=client) as owner:
        for _ in range(2):
            assert "no display" in (await owner.authority.mcp_ready())["client"]["problem"]
        assert await owner.check() == UNCHANGED

        assert extension.noted() == ["begin one", "end one"]


async def test_where_both_have_changed_the_extension_comes_first(tmp_path: Path, programs: Path) -> None:
    async with owner_of_both(tmp_path, programs) as (owner, server, extension):
        extension.save("ext")
        server.save("server")

        result = await owner.check()

        assert result == DUE.replace(extension_changed=True, extension_rebuilt=True, client_reloaded=True)
        assert server.noted()[1:] == ["begin ext", "end ext", "client ext", "begin server", "end server"]


async def test_an_extension_that_does_not_compile_leaves_its_client_and_the_server_is_still_reloaded(
    tmp_path: Path, programs: Path
) -> None:
    async with owner_of_both(tmp_path, programs) as (owner, server, extension):
        extension.save("broken")
        server.save("two")

        result = await owner.check()

        assert (result.extension_changed, result.extension_rebuilt) == (True, False)
        assert "there is an error" in (result.extension_build_error or "")
        assert (result.client_reloaded, result.restart_due) == (False, True)
        assert server.noted().count("client one") == 1


async def test_a_server_that_is_started_again_hides_no_change_of_the_extension(
    tmp_path: Path, python_server: PythonServer
) -> None:
    extension = PythonServer(tmp_path / "extension")
    packages = (
        WatchedPackage(Role.SERVER, str(python_server.root)),
        WatchedPackage(Role.EXTENSION, str(extension.root)),
    )
    async with Owner(tmp_path / "state", *packages) as owner:
        extension.save("two")

        await owner.start()  # it crashed

        assert (await owner.check()).extension_changed
        assert await owner.check() == UNCHANGED


async def test_one_root_for_both_roles_is_built_in_both_ways(project: Project, tmp_path: Path) -> None:
    project.describe({"build": "echo build >> builds.txt", "compile": "echo compile >> builds.txt"})
    packages = [WatchedPackage(role, str(project.root)) for role in Role]
    async with Owner(tmp_path / "state", *packages, environ=project.environ) as owner:
        project.save("two")

        result = await owner.check()

        assert result == DUE.replace(extension_changed=True, extension_rebuilt=True)
        assert project.noted() == ["compile", "build"]


# The status.


async def test_the_status_tells_what_was_done(project: Project) -> None:
    async with owner_of(project) as owner:
        idle = owner.authority.status()
        async with building(owner, project, "two") as checking:
            busy = owner.authority.status()
        assert (await checking).restart_due
        await owner.authority.ready_to_restart()
        await owner.check()
        done = owner.authority.status()

    assert (idle["state"], busy["state"], done["state"]) == ("idle", "building", "idle")
    assert (done["checks"], done["builds"], done["restarts"]) == (2, 1, 1)
    [package] = done["packages"]
    assert (package["role"], package["kind"], package["files"]) == ("server", "JavaScript", 1)
    assert package["watched"] is (sys.platform == "linux"), "in the temp folder of a usual system"
    assert (package["root"], package["build"], package["problems"]) == (str(project.root), "npm run build", [])
    assert len(set(package["sha256"].values())) == 1
    assert done["lastBuild"]["ok"] is True
    assert done["lastCheck"]["result"]["mcpChanged"] is False
    assert done["lastRestart"]["lists"] == "same"
    [reload] = done["history"]
    assert (reload["changed"], reload["build"], reload["ok"]) == (["src/main.js"], "npm run build", True)
    assert (done["strategy"], done["client"]) == ("restart", None)
    json.dumps(done)


async def test_a_failed_restore_that_was_mended_by_hand_is_noticed_by_the_next_check(tmp_path: Path) -> None:
    root, builds = tmp_path / "server", tmp_path / "builds"
    program = write(
        tmp_path / "bin" / "dotnet",
        f"""#!/bin/sh
test "$1" = build || exit 1
echo build >> {builds}
grep -q mended obj/project.assets.json && exit 0
mkdir -p obj
echo '{{"logs": ["NU1101"]}}' > obj/project.assets.json
echo 'error NU1101: Unable to find package'
exit 1
""",
    )
    program.chmod(0o755)
    write(root / "Server.csproj", '<Project Sdk="Microsoft.NET.Sdk" />')
    source = write(root / "Program.cs", "class Old;")
    environ = {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    async with Owner(tmp_path / "state", WatchedPackage(Role.SERVER, str(root)), environ=environ) as owner:
        write(source, "class New;")

        failed = await owner.check(), await owner.check()
        count = len(builds.read_text().splitlines())
        write(root / "obj" / "project.assets.json", '{"mended": true}')
        mended = await owner.check()

    assert ["NU1101" in (result.server_build_error or "") for result in failed] == [True, True]
    assert mended.server_build_error is None
    assert len(builds.read_text().splitlines()) == count + 1
    assert count <= 2, "the second check has repeated no build; one that lacks packages is repeated with a restore"
