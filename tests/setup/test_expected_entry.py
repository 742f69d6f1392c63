"""What entries should say, and whether they do."""

from __future__ import annotations

import pytest

from uno_devserver.setup.edits.document import ServerEntry
from uno_devserver.setup.entry_command import own_command
from uno_devserver.setup.entry_match import matches
from uno_devserver.setup.expected_entry import expected, renewed, up_to_date
from uno_devserver.setup.profiles import Dialect
from uno_devserver.setup.servers import Detection, ServerDefinition, VariantChoice

from .made import APP, CHOICE, DNX, MERGED, PLAIN, STABLE, UNO_APP, URL, command, match_of, stdio


@pytest.mark.parametrize(
    ("words", "variant", "current"),
    [
        (("uvx", "uno-devserver", "--mcp-app"), "stable", True),
        (("dnx", "-y", "uno.devserver", "--mcp-app"), "stable", True),
        (("dotnet", "dnx", "-y", "uno.devserver", "--mcp-app"), "stable", True),
        (("/there/uvx", "uno-devserver", "--mcp-app"), "stable", True),
        (("/gone/uvx", "uno-devserver", "--mcp-app"), "stable", False),
        (("uvx", "uno-devserver", "--mcp-app", "--solution-dir", "x", "--", "npx", "y"), "stable", True),
        (("uvx", "uno-devserver", "--port", "1", "--mcp-app"), "stable", False),
        (("uvx", "uno-devserver", "--mcp-app"), "prerelease", False),
        (("uvx", "--prerelease", "allow", "uno-devserver", "--mcp-app"), "prerelease", True),
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

    assert up_to_date(match, VariantChoice(variant), PLAIN, lambda path: path.startswith("/there/")) is current


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
        (VariantChoice("prerelease", asked=False), current),
        (VariantChoice("prerelease"), False),
    ):
        assert up_to_date(match, choice, PLAIN, lambda path: path.startswith("/there/")) is is_current
    assert renewed(match, VariantChoice("pinned:1.2")).args[:2] == ("uno-devserver@1.2", "--mcp-app")
    assert renewed(match, VariantChoice("stable", asked=False)).command == own_command()[0]


@pytest.mark.parametrize("more", [("--prerelease",), ("--version", "1.2"), ()])
def test_this_programs_own_version_says_nothing_about_another_program(more: tuple[str, ...]) -> None:
    other = match_of(command("dnx", "-y", *more, "uno.devserver", "--mcp-app"))
    odd = match_of(command("dnx", *more, "uno.devserver", "--mcp-app"))

    for variant in ("stable", "prerelease"):
        assert up_to_date(other, VariantChoice(variant, asked=False), PLAIN)
        assert renewed(odd, VariantChoice(variant, asked=False)).args == other.says.args
    assert not up_to_date(other, VariantChoice("pinned:3.4"), PLAIN)
    assert not up_to_date(
        match_of(command("uvx", "uno-devserver@1.2", "--mcp-app")), VariantChoice("stable", asked=False), PLAIN
    )


def test_a_way_of_its_own_is_current_until_somebody_asks_for_another() -> None:
    own = match_of(command("uvx", "--python", "3.12", "uno-devserver@1.2", "--mcp-app"))
    gone = match_of(command("/gone/uvx", "--python", "3.12", "uno-devserver", "--mcp-app"))

    assert up_to_date(own, VariantChoice("stable", asked=False), PLAIN)
    assert not up_to_date(own, VariantChoice("stable"), PLAIN)
    assert not up_to_date(own, VariantChoice("stable", "uvx", asked=False), PLAIN)
    assert not up_to_date(gone, VariantChoice("stable", asked=False), PLAIN)


@pytest.mark.parametrize("users", [("--wait-calls",), ("-l", "Debug"), ("--", "npx", "@x/y@1.2", "--mcp-app")])
def test_what_the_user_put_behind_our_arguments_stays(users: tuple[str, ...]) -> None:
    match = match_of(command("uvx", "uno-devserver", "--mcp-app", *users))

    assert match.variant == "stable"
    assert renewed(match, VariantChoice("pinned:3")).args == ("uno-devserver@3", "--mcp-app", *users)
    assert renewed(match, VariantChoice("stable", "dnx")).args == (*DNX.args, *users)


def test_with_a_chosen_runner_only_its_form_is_current() -> None:
    uvx, dnx, bare = match_of(stdio(STABLE)), match_of(stdio(DNX)), match_of(command("uno-devserver", "--mcp-app"))
    here = match_of(command(*own_command(), *APP))

    def current(runner: str) -> list[bool]:
        return [up_to_date(match, VariantChoice("stable", runner), PLAIN) for match in (uvx, dnx, bare, here)]

    assert current("uvx") == [True, False, False, False]
    assert current("dnx") == [False, True, False, False]
    assert current("path") == [False, False, False, True]


def test_the_dialect_and_what_the_user_added_do_not_matter() -> None:
    merged = {"type": "local", "command": ["uvx", "uno-devserver", "--mcp-app"], "enabled": True}
    added = {**stdio(STABLE), "env": {"A": "1"}, "disabled": False}

    assert up_to_date(match_of(merged, dialect=MERGED), CHOICE, MERGED)
    assert up_to_date(match_of(added), CHOICE, PLAIN)


def test_a_command_of_the_wrong_kind_is_not_current_because_the_client_does_not_take_it() -> None:
    merged = {"command": ["uvx", "uno-devserver", "--mcp-app"]}

    assert not up_to_date(match_of(merged), CHOICE, PLAIN)
    assert not up_to_date(match_of(stdio(STABLE), dialect=MERGED), CHOICE, MERGED)


def test_an_address_is_current_when_it_is_the_same_whatever_the_variant() -> None:
    assert up_to_date(match_of({"serverUrl": URL}, "UnoDocs"), VariantChoice("pinned:1.0", "uvx"), PLAIN)
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
    assert expected(seed, VariantChoice("prerelease", "uvx")) == DNX


def test_the_version_stands_wherever_a_definition_asks_for_it() -> None:
    choice = VariantChoice("pinned:1.2.3")

    assert expected(UNO_APP, choice).args == ("uno-devserver@1.2.3", "--mcp-app")
    assert expected(UNO_APP, choice, "dnx").args == ("-y", "--version", "1.2.3", "uno.devserver", "--mcp-app")
    assert expected(UNO_APP, VariantChoice("stable", "dnx")) == DNX
    assert expected(UNO_APP, VariantChoice("stable", "dnx"), "uvx") == STABLE


def test_this_program_is_named_by_its_path() -> None:
    found = expected(UNO_APP, CHOICE, "path")

    assert (found.command, *found.args) == (*own_command(), "--mcp-app")
