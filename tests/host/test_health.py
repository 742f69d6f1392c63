"""The report says what is, and never better."""

from __future__ import annotations

import pytest

from uno_devserver.host.health import AddInStatus, AddInSummary, health_report

WELL = AddInStatus("good", "/a/good.py", "1.0", loaded=True)
FAILED = AddInStatus("bad", "/a/bad.py", error="ValueError (/a/bad.py:3)")
PARTLY = AddInStatus("half", "/a/half.py", loaded=True, error="the tool 'x' is refused")
COMING = AddInStatus("next", "/a/next.py")


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (AddInSummary(), "Healthy"),
        (AddInSummary((WELL,)), "Healthy"),
        (AddInSummary((WELL, FAILED)), "Degraded"),
        (AddInSummary((WELL, PARTLY)), "Degraded"),
        (AddInSummary((WELL, COMING), loading=True), "Healthy"),
        (AddInSummary((FAILED, COMING), loading=True), "Degraded"),
        (AddInSummary((COMING,)), "Degraded"),
        (AddInSummary((WELL,), discovery_error="MSBuild failed"), "Degraded"),
    ],
)
def test_the_host_is_healthy_only_if_nothing_failed(status: AddInSummary, word: str) -> None:
    assert health_report(status, version="1.0", ide_connected=False)["status"] == word


def test_the_fields_of_the_dotnet_host_come_first_and_in_its_order() -> None:
    made = health_report(AddInSummary((WELL,)), version="6.0.0", ide_connected=True, more={"processId": 7})

    assert list(made)[:4] == ["status", "hostVersion", "addIns", "ideChannelConnected"]
    assert list(made["addIns"][0])[:5] == ["name", "version", "assemblyPath", "loaded", "error"]
    assert (made["hostVersion"], made["ideChannelConnected"], made["processId"]) == ("6.0.0", True, 7)
