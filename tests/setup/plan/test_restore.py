"""Files put back as they were before our first change, and what others did since."""

from __future__ import annotations

from pathlib import Path

import pytest

from setup.made import CHOICE, HERE, SERVERS, chosen, client, place
from support.files import write
from uno_devserver.setup.change_records import record_of
from uno_devserver.setup.change_writer import WriteOptions, apply_plan
from uno_devserver.setup.definitions import Definitions
from uno_devserver.setup.plan.changes import Action, Operation
from uno_devserver.setup.plan.install import plan_install
from uno_devserver.setup.plan.request import ChangeRequest, PlannedFiles
from uno_devserver.setup.plan.restore import plan_restore
from uno_devserver.setup.profiles import Scope
from uno_devserver.setup.server_definition import VariantChoice

THEIRS = b'{"theirs": 1}'


class Setup:
    def __init__(self, root: Path) -> None:
        self.path = root / "new" / "mcp.json"
        self.options = WriteOptions(str(root / "state"))
        profile = client(place(self.path))
        self.request = ChangeRequest(profile, SERVERS, Definitions((profile,), SERVERS))

    def install(self, *, choice: VariantChoice = CHOICE, backup: bool = True) -> None:
        options = self.options.replace(backup=backup)
        done = apply_plan(lambda: plan_install(self.request, choice, PlannedFiles(), HERE), options)
        assert all(one.action is not Action.ERROR for one in done), done

    def restore(self, *, force: bool = False) -> Operation:
        places = self.request.reach(all_scopes=False)
        (done,) = apply_plan(lambda: plan_restore(self.request, places, self.options.folder, force=force), self.options)
        return done


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


@pytest.fixture
def installed(setup: Setup) -> Setup:
    """With our entries in a file that was `{ }` before."""
    write(setup.path, "{ }")
    setup.install()
    return setup


def test_a_users_file_is_not_put_back_by_way_of_a_link_in_the_workspace(installed: Setup, tmp_path: Path) -> None:
    link = tmp_path / "ws" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(installed.path)
    before = installed.path.read_bytes()
    profile = client(place(link, within=str(link.parent)))
    request = ChangeRequest(profile, SERVERS, Definitions((profile,), SERVERS))

    (done,) = plan_restore(request, profile.places, installed.options.folder, force=True)

    assert isinstance(done, Operation)
    assert (done.action, done.path) == (Action.ERROR, str(link))
    assert f"'{link}' is a link to '{installed.path}'" in done.reason
    assert installed.path.read_bytes() == before


@pytest.mark.parametrize("backup", [True, False])
def test_all_our_changes_are_undone_at_once(setup: Setup, backup: bool) -> None:
    write(setup.path, "{ } // mine")
    setup.install(backup=backup)
    setup.install(choice=chosen("pinned:1.2.3"), backup=backup)

    done = setup.restore()

    assert done.action is Action.RESTORED
    assert done.server is None
    assert setup.path.read_bytes() == b"{ } // mine"
    assert record_of(setup.options.folder, str(setup.path)) is None
    assert setup.restore().action is Action.NOT_FOUND


def test_a_file_that_we_made_is_removed_with_its_folder(setup: Setup) -> None:
    setup.install()

    assert setup.restore().reason == "Removed: it did not exist before"
    assert not setup.path.parent.exists()


def test_a_file_that_others_changed_is_only_put_back_by_force_and_theirs_is_kept(installed: Setup) -> None:
    installed.path.write_bytes(THEIRS)

    refused = installed.restore()
    assert refused.action is Action.ERROR
    assert "--force" in refused.reason
    assert installed.path.read_bytes() == THEIRS

    forced = installed.restore(force=True)
    assert forced.action is Action.RESTORED
    assert installed.path.read_bytes() == b"{ }"
    assert Path(forced.backup or "").read_bytes() == THEIRS
    assert installed.restore().action is Action.NOT_FOUND


def test_a_file_that_the_user_has_put_back_is_left_alone(installed: Setup) -> None:
    write(installed.path, "{ }")

    assert installed.restore(force=True).action is Action.NOT_FOUND


def test_what_is_kept_from_before_others_changed_the_file_is_told_of_and_reached_by_force(installed: Setup) -> None:
    installed.path.write_bytes(THEIRS)
    installed.install()

    undone = installed.restore()
    assert undone.action is Action.RESTORED
    assert installed.path.read_bytes() == THEIRS, "what was there before our changes since then"

    told = installed.restore()
    assert told.action is Action.NOT_FOUND
    assert "--force" in told.reason
    assert told.reason.startswith("No change of ours is left to undo. What it was at ")
    assert len(told.notes) == 1, "the one content that is kept"
    assert installed.path.read_bytes() == THEIRS

    forced = installed.restore(force=True)
    assert installed.path.read_bytes() == b"{ }"
    assert Path(forced.backup or "").read_bytes() == THEIRS
    assert any("mcp restore cursor --force" in note for note in forced.notes)


def test_by_force_all_that_is_kept_can_be_reached_and_nothing_is_lost(installed: Setup) -> None:
    for content in (b'{"a": 1}', b'{"a": 2}'):
        installed.path.write_bytes(content)
        installed.install()
    installed.path.write_bytes(THEIRS)

    seen = []
    for _ in range(5):
        assert installed.restore(force=True).action is Action.RESTORED
        seen.append(installed.path.read_bytes())

    assert seen == [b'{"a": 2}', b'{"a": 1}', b"{ }", THEIRS, b'{"a": 2}']


def test_an_original_that_others_have_put_back_is_kept_when_an_older_one_takes_its_place(installed: Setup) -> None:
    installed.path.write_bytes(THEIRS)
    installed.install()
    installed.path.write_bytes(THEIRS)  # by hand

    forced = installed.restore(force=True)

    assert installed.path.read_bytes() == b"{ }"
    assert Path(forced.backup or "").read_bytes() == THEIRS


def test_a_file_that_we_made_and_others_changed_goes_by_force_and_theirs_is_kept(setup: Setup) -> None:
    setup.install()
    setup.path.write_bytes(THEIRS)

    forced = setup.restore(force=True)

    assert not setup.path.parent.exists()
    assert Path(forced.backup or "").read_bytes() == THEIRS


def test_a_file_that_others_removed_is_put_back_by_force(installed: Setup) -> None:
    installed.path.unlink()

    assert "It was removed since" in installed.restore().reason
    assert installed.restore(force=True).action is Action.RESTORED
    assert installed.path.read_bytes() == b"{ }"


def test_without_a_backup_force_cannot_help_and_says_so(setup: Setup) -> None:
    write(setup.path, "{ }")
    setup.install(backup=False)
    setup.path.write_bytes(THEIRS)

    done = setup.restore(force=True)

    assert done.action is Action.ERROR
    assert "no backup was kept" in done.reason
    assert setup.path.read_bytes() == THEIRS


def test_a_backup_that_is_gone_is_an_error_that_names_it(installed: Setup) -> None:
    record = record_of(installed.options.folder, str(installed.path))
    assert record is not None
    Path(record.backup or "").unlink()
    installed.path.write_bytes(THEIRS)

    done = installed.restore(force=True)

    assert done.action is Action.ERROR
    assert record.backup in done.reason if record.backup else False
    assert installed.path.read_bytes() == THEIRS


def test_a_file_that_cannot_be_read_is_an_error(setup: Setup) -> None:
    setup.install()
    setup.path.unlink()
    setup.path.mkdir()

    assert setup.restore().action is Action.ERROR


def test_other_clients_that_read_the_file_are_named(setup: Setup) -> None:
    other = client(place(setup.path)).replace(id="other", name="Another Client")
    setup.request = setup.request.replace(definitions=Definitions((setup.request.profile, other), SERVERS))
    setup.install()

    assert "Another Client" in setup.restore().notes[0]


def test_contents_of_one_second_are_told_apart(installed: Setup) -> None:
    installed.path.write_bytes(b'{"a": 1}')
    installed.install()
    installed.path.write_bytes(THEIRS)

    notes = installed.restore().notes

    assert len({note.partition(": ")[0] for note in notes}) == len(notes) == 2


def test_after_an_older_content_was_put_back_nothing_is_said_to_be_undone(installed: Setup) -> None:
    ours = installed.path.read_bytes()
    installed.path.write_bytes(ours + b"\n")
    installed.install(choice=chosen("pinned:1.2.3"))
    installed.path.write_bytes(THEIRS)
    installed.restore(force=True)
    assert installed.path.read_bytes() == ours + b"\n", "with our entries"

    told = installed.restore()

    assert told.action is Action.NOT_FOUND
    assert "undone" not in told.reason
    assert any(Path(note.rpartition(": ")[2].strip("'")).read_bytes() == b"{ }" for note in told.notes)


def test_a_file_of_the_user_counts_elsewhere_too(setup: Setup) -> None:
    profile = client(place(setup.path, Scope.USER)).replace(default_scope=Scope.USER)
    setup.request = ChangeRequest(profile, SERVERS, Definitions((profile,), SERVERS))
    setup.install()

    assert setup.restore().notes == (f"'{setup.path}' is your own configuration: other workspaces use it, too.",)
