"""What becomes of a server when its workspace changes: each row of the table, and what holds for all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.proxy.workspace.decisions import Transition, Trigger, WorkspaceIdentity, transition
from uno_devserver.workspace.global_json import UnoSdk

A = WorkspaceIdentity("/w", "/w/A.sln", "/w/global.json", UnoSdk("Uno.Sdk", "6.5.31"))
B = A.replace(solution="/w/B.sln")
FILES, ROOTS, USER = Trigger.FILE_SYSTEM, Trigger.ROOTS, Trigger.USER
REFRESH, START, STOP = Transition.REFRESH, Transition.START, Transition.STOP
RESTART, DIAGNOSE = Transition.RESTART, Transition.DIAGNOSE

ROWS = {
    "the same, by files, started": (A, A, FILES, True, REFRESH),
    "the same, by files, not started": (A, A, FILES, False, REFRESH),
    "the same, by roots, started": (A, A, ROOTS, True, REFRESH),
    "the same, by roots, not started": (A, A, ROOTS, False, START),
    "the same, by the user, started": (A, A, USER, True, REFRESH),
    "the same, by the user, not started": (A, A, USER, False, START),
    "from nothing, by files": (None, A, FILES, False, START),
    "from nothing, by roots": (None, A, ROOTS, False, START),
    "from nothing, by the user": (None, A, USER, False, START),
    "to nothing, by files, started": (A, None, FILES, True, STOP),
    "to nothing, by files, not started": (A, None, FILES, False, STOP),
    "to nothing, by roots": (A, None, ROOTS, True, DIAGNOSE),
    "to nothing, by the user": (A, None, USER, True, DIAGNOSE),
    "to another, by files, started": (A, B, FILES, True, RESTART),
    "to another, by files, not started": (A, B, FILES, False, RESTART),
    "to another, by roots, started": (A, B, ROOTS, True, DIAGNOSE),
    "to another, by roots, not started": (A, B, ROOTS, False, DIAGNOSE),
    "to another, by the user, started": (A, B, USER, True, RESTART),
    "to another, by the user, not started": (A, B, USER, False, START),
    "nothing still, by files": (None, None, FILES, False, REFRESH),
    "nothing still, by roots": (None, None, ROOTS, False, DIAGNOSE),
    "nothing still, by the user": (None, None, USER, False, DIAGNOSE),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_each_row_of_the_table(
    row: tuple[WorkspaceIdentity | None, WorkspaceIdentity | None, Trigger, bool, Transition],
) -> None:
    previous, new, trigger, started, expected = row

    assert transition(previous, new, trigger, started=started) is expected


@pytest.mark.parametrize(
    "other",
    [
        A.replace(directory="/v"),
        A.replace(solution="/w/B.sln"),
        A.replace(solution=None),
        A.replace(global_json="/global.json"),
        A.replace(sdk=UnoSdk("Uno.Sdk", "6.5.32")),
        A.replace(sdk=UnoSdk("Uno.Sdk.Private", "6.5.31")),
    ],
)
def test_folder_solution_global_json_and_sdk_together_are_the_workspace(other: WorkspaceIdentity) -> None:
    assert transition(A, A.replace(), FILES, started=True) is REFRESH
    assert transition(A, other, FILES, started=True) is RESTART


@pytest.mark.parametrize(("started", "expected"), [(True, RESTART), (False, START)])
def test_a_user_can_have_the_same_workspace_restarted(started: bool, expected: Transition) -> None:
    assert transition(A, A, USER, started=started, force_restart=True) is expected


IDENTITIES = st.none() | st.builds(
    WorkspaceIdentity,
    st.sampled_from(["/v", "/w"]),
    st.none() | st.sampled_from(["/w/A.sln", "/w/B.sln"]),
    st.none() | st.just("/w/global.json"),
    st.none() | st.builds(UnoSdk, st.just("Uno.Sdk"), st.sampled_from(["6.5.31", "6.5.32"])),
)


@given(IDENTITIES, IDENTITIES, st.sampled_from(Trigger), st.booleans(), st.booleans())
def test_whatever_happens_the_transition_makes_sense(
    previous: WorkspaceIdentity | None, new: WorkspaceIdentity | None, trigger: Trigger, started: bool, force: bool
) -> None:
    due = transition(previous, new, trigger, started=started, force_restart=force)

    assert (due in (START, RESTART)) <= (new is not None), "only a workspace can be started"
    assert (due is STOP) <= (trigger is FILES and new is None and previous is not None)
    assert (due is DIAGNOSE) <= (trigger is not FILES), "only who names a folder can have named a wrong one"
    assert (due is DIAGNOSE and trigger is USER) <= (new is None), "the user's choice is obeyed where it can be"
    if trigger is USER and new is not None:
        assert due is (START if previous is None or not started else RESTART if force or new != previous else REFRESH)
    if due is not RESTART:
        assert due is transition(previous, new, trigger, started=started), "force only ever makes a restart"
