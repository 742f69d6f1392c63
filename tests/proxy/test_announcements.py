"""Log messages to clients about the life of the server."""

from __future__ import annotations

from typing import Any

import pytest

from uno_devserver.proxy.announcements import Announcements


def test_a_message_has_a_level_and_says_who_speaks_and_our_own_log_has_it_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heard: list[tuple[str, Any]] = []

    Announcements(lambda method, params: heard.append((method, params))).say("warning", "It has gone.")

    message = {"level": "warning", "logger": "uno-devserver", "data": "It has gone."}
    assert heard == [("notifications/message", message)]
    assert "warn: It has gone." in capsys.readouterr().err


def test_the_same_is_said_once_until_all_was_well() -> None:
    heard: list[str] = []
    announcements = Announcements(lambda _, params: heard.append(params["data"]))

    for _ in range(3):
        announcements.say("info", "Trying.")
        announcements.say("error", "It does not work.")
    announcements.recovered()
    announcements.say("error", "It does not work.")

    assert heard == ["Trying.", "It does not work.", "It does not work."]
