"""What the scenarios share."""

from __future__ import annotations

import pytest

from support.machine import Machine
from support.registration import Clients


@pytest.fixture
def clients(machine: Machine) -> Clients:
    """A machine without any AI client, and with an empty workspace."""
    return Clients(machine)
