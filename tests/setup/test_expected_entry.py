"""What entries should say, and whether they do."""

from __future__ import annotations

from typing import Any

import pytest

from uno_devserver.setup.edits.document import ServerEntry
from uno_devserver.setup.entry_command import own_command
from uno_devserver.setup.entry_match import matches
from uno_devserver.setup.expected_entry import TRUST_VARIABLE, expected, index_problem, renewed, up_to_date
from uno_devserver.setup.profiles import Dialect
from uno_devserver.setup.server_definition import Detection, ServerDefinition
from uno_devserver.workspace import trust

from .made import APP, CHOICE, DNX, MERGED, PLAIN, STABLE, UNO_APP, UNPINNED, URL, chosen, command, match_of, stdio


@pytest.mark.parametrize(
    ("words", "variant", "current"),
    [
        (("uvx", *STABLE.args), "stable", True),
        (("uvx", "uno-devserver", "--mcp-app"), "stable", False),
        (("uvx", "--from", "uno-devserver==1.1.*", "uno-devserver", "--mcp-app"), "stable", False),
        (("dnx", "-y", "uno.devserver", "--mcp-app"), "stable", True),
        (("dotnet", "dnx", "-y", "uno.devserver", "--mcp-app"), "stable", True),
        (("/there/uvx", *STABLE.args), "stable", True),
        (("/gone/uvx", *STABLE.args), "stable", False),
        (("uvx", *STABLE.args, "--solution-dir", "x", "--", "npx", "y"), "stable", True),
        (("uvx", "uno-devserver", "--port", "1", "--mcp-app"), "stable", False),
        (("uvx", "uno-devserver", "--mcp-app"), "prerelease", False),
        (("uvx", "--prerelease", "allow", *STABLE.args), "prerelease", True),
        (("uvx", "--prerelease", "allow", "uno-devserver", "--mcp-app"), "prerelease", False),
        (("dnx", "-y", "--prerelease", "uno.devserver", "--mcp-app"), "prerelease", True),
        (("uvx", "uno-devserver@1.2", "--mcp-app"), "pinned:1.2", True),
        (("uvx", "uno-devserver@1.2", "--mcp-app"), "pinned:1.3", False),
        (("dnx", "-y", "--version", "1.2", "uno.devserver", "--mcp-app"), "pinned:1.2", True),
        (("uno-devserver", "mcp", "start"), "stable", False),
    ],
)
def test_without_a_chosen_runner_the_form_of_any_is_current(
    words: tuple[str, ...], variant: str, current: bool
) -> None:
    match = match_of(command(*words))

    assert up_to_date(match, chosen(variant), PLAIN, lambda path: path.startswith("/there/")) is current


@pytest.mark.parametrize(
    ("words", "current"),
    [
        (("uno-devserver", "--mcp-app"), True),
        (("/there/uno-devserver", "--mcp-app", "-l", "Debug"), True),
        (("/gone/uno-devserver", "--mcp-app"), False),
        (("/there/python3", "-P", "-m", "uno_devserver", "--mcp-app"), True),
        (("/there/python3", "-m", "uno_devserver", "--mcp-app"), False),  # it imports from the folder it is started in
        (("/there/python3", "-m", "uno_devserver", "-x", "--mcp-app"), True),
    ],
)
def test_a_path_is_current_unless_a_version_was_asked_for_which_it_cannot_say(
    words: tuple[str, ...], current: bool
) -> None:
    match = match_of(command(*words))

    for choice, is_current in (
        (chosen("prerelease", asked=False), current),
        (chosen("prerelease"), False),
    ):
        assert up_to_date(match, choice, PLAIN, lambda path: path.startswith("/there/")) is is_current
    assert renewed(match, chosen("pinned:1.2")).args[:2] == ("uno-devserver@1.2", "--mcp-app")
    assert renewed(match, chosen("stable", asked=False)).command == own_command()[0]


@pytest.mark.parametrize("more", [("--prerelease",), ("--version", "1.2"), ()])
def test_this_programs_own_version_says_nothing_about_another_program(more: tuple[str, ...]) -> None:
    other = match_of(command("dnx", "-y", *more, "uno.devserver", "--mcp-app"))
    odd = match_of(command("dnx", *more, "uno.devserver", "--mcp-app"))

    for variant in ("stable", "prerelease"):
        assert up_to_date(other, chosen(variant, asked=False), PLAIN)
        assert renewed(odd, chosen(variant, asked=False)).args == other.says.args
    assert not up_to_date(other, chosen("pinned:3.4"), PLAIN)
    assert not up_to_date(
        match_of(command("uvx", "uno-devserver@1.2", "--mcp-app")), chosen("stable", asked=False), PLAIN
    )


def test_a_way_of_its_own_is_current_until_somebody_asks_for_another() -> None:
    own = match_of(command("uvx", "--python", "3.12", "uno-devserver@1.2", "--mcp-app"))
    gone = match_of(command("/gone/uvx", "--python", "3.12", "uno-devserver", "--mcp-app"))

    assert up_to_date(own, chosen("stable", asked=False), PLAIN)
    assert not up_to_date(own, chosen("stable"), PLAIN)
    assert not up_to_date(own, chosen("stable", "uvx", asked=False), PLAIN)
    assert not up_to_date(gone, chosen("stable", asked=False), PLAIN)


@pytest.mark.parametrize("users", [("--wait-calls",), ("-l", "Debug"), ("--", "npx", "@x/y@1.2", "--mcp-app")])
def test_what_the_user_put_behind_our_arguments_stays(users: tuple[str, ...]) -> None:
    match = match_of(command("uvx", "uno-devserver", "--mcp-app", *users))

    assert match.variant == "stable"
    assert renewed(match, chosen("pinned:3")).args == ("uno-devserver@3", "--mcp-app", *users)
    assert renewed(match, chosen("stable", "dnx")).args == (*DNX.args, *users)


def test_with_a_chosen_runner_only_its_form_is_current() -> None:
    uvx, dnx, bare = match_of(stdio(STABLE)), match_of(stdio(DNX)), match_of(command("uno-devserver", "--mcp-app"))
    here = match_of(command(*own_command(), *APP))

    def current(runner: str) -> list[bool]:
        return [up_to_date(match, chosen("stable", runner), PLAIN) for match in (uvx, dnx, bare, here)]

    assert current("uvx") == [True, False, False, False]
    assert current("dnx") == [False, True, False, False]
    assert current("path") == [False, False, False, True]


def test_the_dialect_and_what_the_user_added_do_not_matter() -> None:
    merged = {"type": "local", "command": ["uvx", *STABLE.args], "enabled": True}
    added = {**stdio(STABLE), "env": {"A": "1"}, "disabled": False}

    assert up_to_date(match_of(merged, dialect=MERGED), CHOICE, MERGED)
    assert up_to_date(match_of(added), CHOICE, PLAIN)


def test_a_command_of_the_wrong_kind_is_not_current_because_the_client_does_not_take_it() -> None:
    merged = {"command": ["uvx", *STABLE.args]}

    assert not up_to_date(match_of(merged), CHOICE, PLAIN)
    assert not up_to_date(match_of(stdio(STABLE), dialect=MERGED), CHOICE, MERGED)


def test_an_address_is_current_when_it_is_the_same_whatever_the_variant() -> None:
    assert up_to_date(match_of({"serverUrl": URL}, "UnoDocs"), chosen("pinned:1.0", "uvx"), PLAIN)
    assert not up_to_date(match_of({"url": URL + "0"}, "UnoDocs"), CHOICE, PLAIN)


def test_an_address_without_the_type_that_its_client_needs_is_outdated() -> None:
    needs, may_have = Dialect(types={"http": "http"}), Dialect(types={"stdio": "stdio", "http": "http"})
    bare = match_of({"url": URL}, "UnoDocs")

    assert not up_to_date(bare, CHOICE, needs)
    assert up_to_date(bare, CHOICE, may_have)
    assert up_to_date(match_of({"url": URL, "type": "streamable-http"}, "UnoDocs"), CHOICE, needs)


def test_a_server_that_is_started_by_one_thing_has_no_runners() -> None:
    seed = ServerDefinition("UnoApp", "stdio", {"stable": DNX}, Detection(keys=("^UnoApp$",)))
    match = matches((ServerEntry("UnoApp", stdio(DNX)),), (seed,), PLAIN)[0]

    assert up_to_date(match, CHOICE, PLAIN)
    assert match.runner is None
    assert expected(seed, chosen("prerelease", "uvx")) == DNX


def test_the_version_stands_wherever_a_definition_asks_for_it() -> None:
    choice = chosen("pinned:1.2.3")

    assert expected(UNO_APP, choice).args == ("uno-devserver@1.2.3", "--mcp-app")
    assert expected(UNO_APP, choice, "dnx").args == ("-y", "--version", "1.2.3", "uno.devserver", "--mcp-app")
    assert expected(UNO_APP, chosen("stable", "dnx")) == DNX
    assert expected(UNO_APP, chosen("stable", "dnx"), "uvx") == STABLE


@pytest.mark.parametrize(
    ("tool", "minor"),
    [("1.2.3", "1.2"), ("0.10.0.post1", "0.10"), ("2.0rc1", "2.0"), ("1.3.0.dev0", "1.3"), ("4", "4")],
)
def test_an_entry_by_name_takes_the_minor_version_of_this_program_and_no_later_one(tool: str, minor: str) -> None:
    for variant, before in (("stable", ()), ("prerelease", ("--prerelease", "allow"))):
        found = expected(UNO_APP, chosen(variant, "uvx", tool=tool))

        assert found.args == (*before, "--from", f"uno-devserver=={minor}.*", "uno-devserver", "--mcp-app")


OWN_PATH = (*own_command(), *APP)


@pytest.mark.parametrize("tool", ["1.2.0.dev0", "1.2.0rc1", "1.2.0a1", "1.2.3+local", "1.2.0-dev.42"])
def test_until_a_release_the_default_is_this_programs_path_and_no_name(tool: str) -> None:
    choice = chosen("prerelease", asked=False, tool=tool)

    written = expected(UNO_APP, choice)

    assert (written.command, *written.args) == OWN_PATH
    for words in (
        UNPINNED.args,
        STABLE.args,
        ("--prerelease", "allow", *UNPINNED.args),
        ("uno-devserver@1", *APP),
    ):
        by_name = match_of(command("uvx", *words, "--mine"))
        assert not up_to_date(by_name, choice, PLAIN)
        assert renewed(by_name, choice) == written.replace(args=(*written.args, "--mine"))
    assert up_to_date(match_of(command(*OWN_PATH)), choice, PLAIN)
    assert up_to_date(match_of(stdio(DNX)), choice, PLAIN), "the .NET tool is another package"


@pytest.mark.parametrize("asked", [{"runner": "uvx", "asked": False}, {}])
def test_who_asks_for_a_name_or_a_version_gets_it_before_a_release_too(asked: dict[str, Any]) -> None:
    choice = chosen("stable", **asked, tool="1.2.0.dev0")

    assert expected(UNO_APP, choice) == STABLE
    assert up_to_date(match_of(stdio(STABLE)), choice, PLAIN)
    assert renewed(match_of(command(*OWN_PATH)), choice) == STABLE


NOT_RELEASED = "runs whatever has the name uno-devserver on the package index: version 1.2.0.dev0 of it is not released"


@pytest.mark.parametrize(
    ("words", "released", "before"),
    [
        (("uvx", *STABLE.args), "", NOT_RELEASED),
        (("uvx", *UNPINNED.args), "runs each later version unseen, because it names none", NOT_RELEASED),
        (("uvx", "uno-devserver@latest", *APP), "runs each later version unseen, because it names none", NOT_RELEASED),
        (("uvx", "uno-devserver@1.1.0", *APP), "runs version 1.1.0, and this program is 1.2.3", NOT_RELEASED),
        (
            ("uvx", "--from", "uno-devserver==1.1.*", "uno-devserver", *APP),
            "runs version 1.1.*, and this program is 1.2.3",
            NOT_RELEASED,
        ),
        (("dnx", "-y", "uno.devserver", *APP), "", ""),
        (OWN_PATH, "", ""),
        (("uvx", "--from", "git+https://x/y", "uno-devserver", *APP), "", ""),
    ],
)
def test_what_is_wrong_with_a_name_depends_on_whether_there_is_a_release(
    words: tuple[str, ...], released: str, before: str
) -> None:
    says = match_of(command(*words)).says

    assert index_problem(says, UNO_APP, chosen("stable", asked=False)) == released
    assert index_problem(says, UNO_APP, chosen("stable", asked=False, tool="1.2.0.dev0")) == before


def test_a_server_that_is_not_this_program_is_started_as_its_definition_says_before_a_release_too() -> None:
    other = ServerDefinition("Mine", "stdio", {"stable": STABLE}, Detection(keys=("^Mine$",)), "uvx")
    choice = chosen("stable", asked=False, tool="1.2.0.dev0")

    assert expected(other, choice) == STABLE
    assert index_problem(STABLE, other, choice) == ""


def test_this_program_is_named_by_its_path() -> None:
    found = expected(UNO_APP, CHOICE, "path")

    assert (found.command, *found.args) == (*own_command(), "--mcp-app")


def test_the_variable_that_agrees_is_the_one_that_trust_reads() -> None:
    assert TRUST_VARIABLE == trust.TRUST_VARIABLE
