"""What an add-in gets that asks its client something while the Host itself is the one that calls."""

from __future__ import annotations

import pytest

from uno_devserver.host.mcp_requests import HostCall
from uno_devserver.protocol.jsonrpc import METHOD_NOT_FOUND, RpcError


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list"])
async def test_the_host_answers_no_questions(method: str) -> None:
    call = HostCall("tools/list")

    for asked in (call, call.session):
        with pytest.raises(RpcError, match=f"no answer to '{method}'") as refused:
            await asked.ask(method, {})
        assert refused.value.code == METHOD_NOT_FOUND


def test_what_it_is_told_leads_to_nothing() -> None:
    call = HostCall("tools/list")

    call.notify("notifications/progress", {"progress": 1})
    call.session.notify("notifications/tools/list_changed")
    call.close_stream()

    assert (call.method, call.params, call.session.client.capabilities) == ("tools/list", {}, {})
