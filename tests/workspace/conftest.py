from __future__ import annotations

import os

import pytest

from support.git import ENVIRONMENT
from support.privileges import ROOT


@pytest.fixture(autouse=True)
def _no_user_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process seems to be one of a user other than root, to whom the files of the tests belong."""
    if not ROOT:
        pytest.skip("only root can give a file to another user")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
