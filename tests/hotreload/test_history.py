"""The history of reloads: what changed, how long it took, what became of it, and which tools came and went."""

from __future__ import annotations

import json
from typing import Any

import pytest

from uno_devserver.hotreload.authority import LISTED_TOOLS, RestartResult, ToolChanges
from uno_devserver.hotreload.history import MAX_RELOADS, SHOWN_PATHS, SHOWN_PROBLEM, ReloadHistory
from uno_devserver.hotreload.package_state import BuildResult
from uno_devserver.hotreload.watched_package import Role

BUILT = BuildResult("d1", named="npm run build", seconds=1.5, log_file="/logs/build.log")
BROKEN = BUILT.replace(error="src/main.ts(3,1): error TS1005: ';' expected.")


@pytest.fixture
def figures() -> ReloadHistory:
    return ReloadHistory()


def history(figures: ReloadHistory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(json.dumps(figures.status()["history"]))
    return found


def test_a_reload_is_kept_with_its_times_and_with_the_tools_that_came_and_went(figures: ReloadHistory) -> None:
    figures.made(Role.SERVER, ["src/main.ts"], BUILT)
    figures.restarted(
        0.25, RestartResult(True, lists="changed", tools=ToolChanges(("new",), ("old",), ("more",), ("other",)))
    )

    [reload] = history(figures)
    assert reload.pop("at").endswith("Z")
    assert reload == {
        "role": "server",
        "changed": ["src/main.ts"],
        "build": "npm run build",
        "buildSeconds": 1.5,
        "restartSeconds": 0.25,
        "ok": True,
        "lists": "changed",
        "problem": None,
        "tools": {"added": ["new"], "removed": ["old"], "grown": ["more"], "changed": ["other"]},
    }


def test_a_server_that_does_not_start_has_no_tools_to_compare(figures: ReloadHistory) -> None:
    figures.made(Role.SERVER, ["a.py"], BuildResult("d1"))
    figures.restarted(0.1, RestartResult(False, "It ended with exit code 1."))

    [reload] = history(figures)
    assert (reload["ok"], reload["problem"], reload["tools"]) == (False, "It ended with exit code 1.", None)


def test_a_failed_build_is_kept_with_what_it_printed_and_where_all_of_it_is(figures: ReloadHistory) -> None:
    figures.made(Role.SERVER, ["src/main.ts"], BROKEN)

    [failed] = history(figures)
    del failed["at"]
    assert failed == {
        "role": "server",
        "changed": ["src/main.ts"],
        "build": "npm run build",
        "buildSeconds": 1.5,
        "ok": False,
        "problem": BROKEN.error,
        "logFile": "/logs/build.log",
    }


def test_a_build_that_fails_again_without_an_edit_is_one_entry_that_still_says_what_changed(
    figures: ReloadHistory,
) -> None:
    figures.made(Role.SERVER, ["src/main.ts"], BROKEN)

    for _ in range(3):
        figures.made(Role.SERVER, [], BROKEN.replace(seconds=2.5))

    [failed] = history(figures)
    assert (failed["changed"], failed["buildSeconds"]) == (["src/main.ts"], 2.5)


def test_other_content_and_another_package_that_fail_are_entries_of_their_own(figures: ReloadHistory) -> None:
    figures.made(Role.SERVER, ["a"], BROKEN)
    figures.made(Role.SERVER, ["b"], BROKEN.replace(digest="d2"))
    figures.made(Role.EXTENSION, ["c"], BROKEN.replace(digest="d2"))

    assert [(entry["role"], entry["changed"]) for entry in history(figures)] == [
        ("server", ["a"]),
        ("server", ["b"]),
        ("extension", ["c"]),
    ]


def test_the_same_failure_after_a_reload_is_told_anew(figures: ReloadHistory) -> None:
    figures.made(Role.SERVER, ["a"], BROKEN)
    figures.made(Role.SERVER, ["a"], BUILT.replace(digest="d2"))
    figures.restarted(0.1, RestartResult(True))
    figures.made(Role.SERVER, ["a"], BROKEN)

    assert [entry["ok"] for entry in history(figures)] == [False, True, False]


def test_what_is_kept_is_bounded_in_every_direction(figures: ReloadHistory) -> None:
    names = tuple(f"tool-{number}" for number in range(500))

    for number in range(MAX_RELOADS + 5):
        figures.made(Role.SERVER, [f"file-{path}" for path in range(500)], BUILT)
        figures.restarted(0.1, RestartResult(True, tools=ToolChanges(names, names, names, names)))
        figures.made(Role.EXTENSION, [], BROKEN.replace(digest=str(number), error=f"{'x' * 10_000} is wrong."))

    kept = history(figures)
    assert len(kept) == MAX_RELOADS
    assert len(kept[0]["changed"]) == SHOWN_PATHS
    assert {len(shown) for shown in kept[0]["tools"].values()} == {LISTED_TOOLS}
    assert len(kept[1]["problem"]) == SHOWN_PROBLEM + len(" … ")
    assert kept[1]["problem"].endswith("is wrong.")


def test_an_extension_that_was_reloaded_is_kept_with_what_became_of_its_client(figures: ReloadHistory) -> None:
    figures.made(Role.EXTENSION, ["ext.ts"], BUILT)
    figures.extension_reloaded(client=True)

    [reload] = history(figures)
    assert (reload["role"], reload["ok"], reload["client"]) == ("extension", True, True)
