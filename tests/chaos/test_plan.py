"""The plan of a run: the same for the same seed, another for another, and every fault in it can be done."""

from __future__ import annotations

import re

import pytest

from chaos import faults, plan
from chaos.upstreams import over_http, over_stdio
from chaos.worlds import UPSTREAMS
from chaos.worlds import WORLDS as WORLD_TYPES

HALF_AN_HOUR = 1800.0


@pytest.mark.parametrize("world", plan.WORLDS)
def test_the_same_seed_gives_the_same_faults_at_the_same_moments(world: str) -> None:
    assert plan.plan(7, 120.0, world) == plan.plan(7, 120.0, world)


def test_another_seed_and_another_world_give_other_faults() -> None:
    plans = [plan.plan(7, 120.0, "restart"), plan.plan(8, 120.0, "restart"), plan.plan(7, 120.0, "swap")]

    assert all(one != other for one in plans for other in plans if one is not other)


@pytest.mark.parametrize("world", plan.WORLDS)
def test_a_plan_fills_its_time_and_leaves_no_round_empty(world: str) -> None:
    rounds = plan.plan(7, 120.0, world)

    spent = sum(fault.after for faults in rounds for fault in faults)
    assert 120.0 <= spent < 120.0 + plan.GAP_SECONDS[1]
    assert all(0 < len(faults) <= plan.ROUND_FAULTS for faults in rounds)


def test_half_an_hour_has_more_than_a_thousand_faults_and_each_kind_in_each_world() -> None:
    plans = {
        world: [fault for faults in plan.plan(9, HALF_AN_HOUR, world) for fault in faults] for world in plan.WORLDS
    }

    assert sum(map(len, plans.values())) > 1000
    for world, planned in plans.items():
        assert {fault.kind for fault in planned} == set(plan.WORLDS[world])


def test_each_kind_of_fault_is_planned_somewhere_and_can_be_done() -> None:
    assert {kind for kinds in plan.WORLDS.values() for kind in kinds} == set(faults.FAULTS)
    assert set(plan.WORLDS) == set(WORLD_TYPES)


def test_the_servers_understand_each_order_that_is_planned() -> None:
    orders = {world: set(kinds["order the server"].manners) - {"huge answer"} for world, kinds in plan.WORLDS.items()}

    in_addin = set(re.findall('order == "(.*?)"', (UPSTREAMS / "addin.py").read_text("utf-8"))) - {"huge answer"}
    assert orders["restart"] == orders["swap"] == set(over_stdio.ORDERS)
    assert orders["http"] == set(over_http.ORDERS)
    assert orders["shared"] == in_addin
