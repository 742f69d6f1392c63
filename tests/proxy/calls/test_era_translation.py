"""What passes from one era to the other."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError
from uno_devserver.proxy.calls.era_translation import (
    error_for_handshake_client,
    for_handshake_client,
    for_handshake_server,
    for_modern_client,
)

SERVER = "io.modelcontextprotocol/serverInfo"
TASK = "io.modelcontextprotocol/related-task"

texts = st.text(max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def _written(result: dict[str, Any]) -> Any:
    return json.loads(msgspec.json.encode(result))


@given(st.dictionaries(texts, json_values, max_size=3))
def test_a_handshake_servers_result_is_what_it_was_for_the_endpoint_to_shape(result: dict[str, Any]) -> None:
    assert _written(for_modern_client(_raw(result))) == result


@given(st.dictionaries(texts.filter(lambda key: key != "_meta"), json_values, max_size=3))
def test_a_modern_servers_result_is_what_it_was_but_for_the_marks_of_its_era(result: dict[str, Any]) -> None:
    modern = {**result, "resultType": "complete", "_meta": {SERVER: {"name": "s"}}}

    assert _written(for_handshake_client(_raw(modern), "tools/call")) == result


def test_numbers_that_no_program_can_hold_pass() -> None:
    raw = msgspec.Raw(b'{ "big": 123456789012345678901234567890, "_meta": { "f": 1e999 } }')

    assert msgspec.json.encode(for_modern_client(raw)) == b'{"big":123456789012345678901234567890,"_meta":{"f":1e999}}'


def test_keys_of_meta_that_are_older_stay() -> None:
    modern = {"_meta": {SERVER: {}, TASK: {"taskId": "1"}, "own": 1}}

    assert _written(for_handshake_client(_raw(modern), "tools/call")) == {"_meta": {TASK: {"taskId": "1"}, "own": 1}}


@pytest.mark.parametrize("meta", [{}, {"own": 1}, None, [1]])
def test_a_meta_without_modern_keys_stays_as_it_is(meta: object) -> None:
    assert _written(for_handshake_client(_raw({"_meta": meta}), "tools/call")) == {"_meta": meta}
    assert _written(for_modern_client(_raw({"_meta": meta}))) == {"_meta": meta}


def test_only_results_that_can_be_cached_lose_what_says_for_how_long() -> None:
    modern = {"ttlMs": 5, "cacheScope": "private", "x": 1}

    assert _written(for_handshake_client(_raw(modern), "resources/read")) == {"x": 1}
    assert _written(for_handshake_client(_raw(modern), "tools/call")) == modern


@pytest.mark.parametrize(
    ("code", "method", "params", "expected"),
    [
        (INVALID_PARAMS, "resources/read", {"uri": "file:///a"}, RESOURCE_NOT_FOUND),
        (INVALID_PARAMS, "resources/read", {"uri": 1}, INVALID_PARAMS),
        (INVALID_PARAMS, "tools/call", {"uri": "file:///a"}, INVALID_PARAMS),
        (METHOD_NOT_FOUND, "resources/read", {"uri": "file:///a"}, METHOD_NOT_FOUND),
    ],
)
def test_an_unknown_resource_has_the_code_of_the_clients_era(
    code: int, method: str, params: dict[str, Any], expected: int
) -> None:
    error = error_for_handshake_client(RpcError(code, "no", {"d": 1}), method, params)

    assert (error.code, error.message, error.data) == (expected, "no", {"d": 1})


def test_answers_that_a_client_brings_unasked_do_not_reach_a_server_that_does_not_know_them() -> None:
    unasked: dict[str, Any] = {"name": "t", "inputResponses": {"q": {}}, "requestState": None, "_meta": {}}

    assert for_handshake_server(unasked) == {"name": "t", "_meta": {}}


def test_a_state_that_nobody_knows_any_more_is_refused_and_nothing_is_run() -> None:
    with pytest.raises(RpcError) as refused:
        for_handshake_server({"name": "t", "requestState": "gone"})

    assert refused.value.code == INVALID_PARAMS
    assert "without requestState" in refused.value.message
