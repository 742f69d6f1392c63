"""The AI clients of a machine, for the tests of registration."""

from __future__ import annotations

import pytest

from support.machine import Machine
from support.registration import Clients


@pytest.fixture
def clients(machine: Machine) -> Clients:
    return Clients(machine)
