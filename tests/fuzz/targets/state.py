"""Files that this program or another one wrote for later, and that anything may have happened to since."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from support.golden import GOLDEN
from uno_devserver.discovery import dotnet
from uno_devserver.discovery.last_known_good import LastKnownGood
from uno_devserver.hotreload.control.messages import restart_json, restart_of
from uno_devserver.hotreload.digest_store import DigestStore
from uno_devserver.instances import registry
from uno_devserver.instances.registry import entry_name, log_of, sidecar_name
from uno_devserver.instances.start import remember_port, remembered_port
from uno_devserver.issues import UserError
from uno_devserver.proxy.health.status_file import inspector_page, running_proxies, status_of
from uno_devserver.proxy.lists import catalogue
from uno_devserver.setup import change_records
from uno_devserver.setup.backups import backups_of
from uno_devserver.setup.definitions import load, packaged
from uno_devserver.setup.paths import Here
from uno_devserver.system.processes import machine_name, process_started, user_name
from uno_devserver.system.state_files import name_for, sha256
from uno_devserver.workspace import trust

from ..documents import BUILT, RAW, WORDS, document
from ..scratch import folder, put
from ..target import Target, told

# --- the registry -----------------------------------------------------------------------------------------------------

REGISTRY_NAMES = (
    "ProcessId", "ParentProcessId", "SolutionPath", "StartTime", "Port", "MachineName", "UserName", "IdeChannelId",
    "WorkspaceDirectory", "LeftOutAddIns", "LogFile", "ControlChannel", "AuxVersion",
)  # fmt: skip


@cache
def registry_values() -> tuple[str, ...]:
    own = (
        os.getpid(),
        1,
        machine_name(),
        user_name(),
        "/ws/a.sln",
        "0001-01-01T00:00:00",
        "2026-11-16T04:00:00.1234567Z",
    )
    return tuple(json.dumps(value) for value in own)


def check_registry(data: bytes) -> None:
    """Files that make no sense are passed over, nothing alive is removed, and what is listed can be asked about."""
    half = len(data) // 2
    pid = os.getpid()
    entry = document(data[:half], REGISTRY_NAMES, registry_values())
    sidecar = document(data[half:], REGISTRY_NAMES, registry_values())
    path = put(f"registry/{entry_name(pid)}", entry)
    put(f"registry/{sidecar_name(pid)}", sidecar)
    where = os.path.dirname(path)
    for server in registry.running_servers(where):
        assert server.process_id > 0
        registry.is_in_workspace(server, "/ws")
        log_of(server)
        assert server.mcp_endpoint
    registry.serving(where, solution="/ws/a.sln")
    registry.serving(where, workspace="/ws")
    registry.on_port(where, 5000)
    registry.update_channel(where, pid, "c")
    pruned = registry.prune(where)
    assert len(pruned.running) + len(pruned.ended) + len(pruned.foreign) + len(pruned.unreadable) <= 1


def registry_seeds() -> list[bytes]:
    entry = (
        RAW
        + json.dumps(
            {
                "ProcessId": os.getpid(),
                "Port": 5000,
                "SolutionPath": "/ws/a.sln",
                "StartTime": "2026-11-16T04:00:00Z",
                "MachineName": machine_name(),
                "UserName": user_name(),
            }
        ).encode()
    )
    sidecar = (
        RAW + b'{"StartTime": "2026-11-16T04:00:00Z", "WorkspaceDirectory": "/ws", "LeftOutAddIns": ["a"], "Port": 1}'
    )
    recorded = [path.read_bytes() for path in sorted((GOLDEN / "host" / "registry").rglob("*.json"))]
    pairs = [entry.ljust(len(sidecar)) + sidecar.ljust(len(entry)), BUILT + bytes(range(50)) + BUILT + bytes(range(50))]
    return pairs + [(RAW + one) * 2 for one in recorded if len(one) < 1000]


# --- our own state ----------------------------------------------------------------------------------------------------

STATE_NAMES = (
    "version", "path", "existed", "states", "sha256", "at", "length", "was", "folders", "backup", "time", "created",
    "processId", "catalogueWritten", "workspace", "config", "agreedBy", "agreedAt", "inspector", "packages",
    "built", "sdk", "addIns", "rawVersion", "tfm", "timestamp", "question", "port", "workspaceHash", "command", "url",
    "names", "tools", "resources", "templates", "prompts", "serverInfo", "capabilities", "instructions",
    "unoSdkVersion", "usesHost", "hotReload", "lastLines", "inspectorToken",
)  # fmt: skip
CLIENT_FILE = "state/client.json"
QUESTION = dotnet.DotNetQuestion("/usr/bin/dotnet", "/ws/global.json", b"{}")


@cache
def state_values() -> tuple[str, ...]:
    place = _workspace()
    values: tuple[Any, ...] = (
        1, 2, place, os.path.realpath(put(CLIENT_FILE, b"x")), sha256(b"x"), process_started(os.getpid()),
        os.getpid(), "1.0.0", "A" * 32, [["p", "1", "/dev/null", "targets", True]],
        {"/k": {"sha256": "a", "built": "b"}}, [{"sha256": sha256(b"x"), "at": 0, "length": 1, "was": "y"}],
        QUESTION.digest(), "2026-11-16T04:00:00Z",
        {name: [] for name in ("tools", "resources", "templates", "prompts")}, 1763000000.5,
    )  # fmt: skip
    return tuple(json.dumps(value) for value in values)


def _workspace() -> str:
    place = folder() / "state" / "ws"
    place.mkdir(parents=True, exist_ok=True)
    return str(place)


def check_state(data: bytes) -> None:
    """A damaged or foreign file counts as missing, and can be written again."""
    kind = STATE_FILES[data[0] % len(STATE_FILES)] if data else STATE_FILES[0]
    kind(document(data[1:], STATE_NAMES, state_values()))


def _record(text: bytes) -> None:
    state, path = _state(), put(CLIENT_FILE, b"x")
    put(f"state/registration/{name_for(path)}.json", text)
    found = change_records.record_of(state, path)
    if found is not None:
        assert found.path == os.path.realpath(path)
        found.original(b"x")
        found.original(None)
    backups_of(state, path)
    kept, _original = change_records.continued_record(found, path, b"x", b"xy", ())
    change_records.keep_record(state, kept)
    after = change_records.record_of(state, path)
    assert after is not None
    assert after.original(b"xy") is not None


def _status(text: bytes) -> None:
    put(f"state/proxies/{os.getpid()}.json", text)
    status = status_of(_state(), os.getpid())
    age: Any = status["catalogueAgeSeconds"] if status else None
    assert age is None or age >= 0
    put(f"state/proxies/{os.getpid()}.json", text)
    for status in running_proxies(_state()):
        assert "inspectorToken" not in status
    page = inspector_page(_state(), os.getpid())
    assert page is None or len(page[1]) == 32


def _trust(text: bytes) -> None:
    workspace = _workspace()
    put(f"state/trust/{name_for(workspace)}.json", text)
    agreed = trust.is_agreed(_state(), workspace)
    for agreement in trust.agreements(_state()):
        assert agreement.outdated or os.path.isdir(agreement.directory)
    assert trust.refusal(_state(), workspace)
    trust.agree(_state(), trust.trust_question(workspace), "trust")
    assert trust.is_agreed(_state(), workspace) or agreed


def _kept(text: bytes) -> None:
    put("state/hotreload/digests.json", text)
    digests = DigestStore(_state())
    digests.get("/k")
    digests.put("/k", "digest")
    known = DigestStore(_state()).get("/k")
    assert known is not None
    assert known.started == "digest"


def _last_known_good(text: bytes) -> None:
    workspace = _workspace()
    put(f"state/addins/{name_for(workspace)}.json", text)
    for packages in (None, ("a",)):
        for addin in LastKnownGood(_state(), workspace, "1.0.0").load(packages):
            assert os.path.isfile(addin.path)


def _dotnet(text: bytes) -> None:
    version = dotnet.read_cached_version(put("state/dotnet-version-cache.json", text), QUESTION)
    assert version is None or version


def _port(text: bytes) -> None:
    workspace = _workspace()
    put(f"state/ports/{name_for(workspace)}.json", text)
    assert 0 <= remembered_port(_state(), workspace, None) < 65536
    remember_port(_state(), workspace, None, 5000)
    assert remembered_port(_state(), workspace, None) == 5000


def _catalogue(text: bytes) -> None:
    """With a seal that is right, so that what is behind it is looked at."""
    identity = catalogue.identity_in(_workspace())
    seal = json.dumps({"version": catalogue.VERSION, "sha256": sha256(text)}).encode()
    for content in (text, seal + b"\n" + text):
        path = catalogue.path_of(_state(), identity)
        put(os.path.relpath(path, folder()), content)
        kept, why = catalogue.load(_state(), identity)
        assert kept is not None or why


def _restarted(text: bytes) -> None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict):
        outcome = restart_of(value)
        assert restart_of(restart_json(outcome)) == outcome


STATE_FILES: tuple[Callable[[bytes], None], ...] = (
    _record, _status, _trust, _kept, _last_known_good, _dotnet, _port, _catalogue, _restarted,
)  # fmt: skip


def _state() -> str:
    return str(folder() / "state")


def state_seeds() -> list[bytes]:
    workspace, client = _workspace(), os.path.realpath(put(CLIENT_FILE, b"x"))
    state = {"sha256": sha256(b"x"), "at": 0, "length": 1, "was": "y"}
    identity = catalogue.identity_in(workspace)
    page = {"inspector": "http://localhost:6274/?token=" + "A" * 32, "inspectorToken": "A" * 32}
    about: dict[str, Any] = {
        "workspace": identity.workspace,
        "workspaceHash": sha256(identity.workspace.encode())[: catalogue.HASH_DIGITS],
        "command": [],
        "names": {"tools": ["t"], "resources": [], "templates": [], "prompts": []},
        "timestamp": 1.5,
        **dict.fromkeys(("url", "unoSdkVersion", "serverInfo", "capabilities", "instructions")),
    }
    samples: list[dict[str, Any]] = [
        {"path": client, "existed": True, "states": [state], "folders": [], "backup": None, "time": "t"},
        {"processId": os.getpid(), "created": process_started(os.getpid()), "catalogueWritten": 1.5, **page},
        {"workspace": workspace, "config": "", "agreedBy": "trust", "agreedAt": "t"},
        {"version": 1, "packages": {"/k": {"sha256": "a", "built": "b"}}},
        {
            "version": 1,
            "workspace": workspace,
            "sdk": "1.0.0",
            "packages": 1,
            "addIns": [["p", "1", "/dev/null", "targets", True]],
        },
        {
            "version": 2,
            "rawVersion": "10.0.100",
            "tfm": "net10.0",
            "timestamp": "2026-11-16T04:00:00Z",
            "question": QUESTION.digest(),
        },
        {"path": workspace, "port": 5000},
        about,
        {"ok": True, "problem": "p", "lastLines": ["l"], "kept": False, "lists": ""},
    ]
    seeds = [bytes([number]) + RAW + json.dumps(sample).encode() for number, sample in enumerate(samples)]
    seeds[8] += b'\n{"name":"t"}'
    built = [bytes([number]) + BUILT + bytes([6, 6, *range(number, number + 40)]) for number in range(len(samples))]
    return seeds + built


# --- definitions of clients and servers -------------------------------------------------------------------------------


def check_definitions(data: bytes) -> None:
    """Definitions, or a sentence that names the file and the place in it."""
    kind = "client-profiles" if data[:1] < b"\x80" else "server-definitions"
    path = put(
        f"definitions/{kind}.json",
        document(data[1:], _definition_names(), ('"json"', '"toml"', '"~/.x/mcp.json"', '["stdio"]')),
    )
    home = str(folder())
    here = Here(f"{home}/ws", home, home, home, {}, "linux")
    try:
        found = load(here, path, None) if kind == "client-profiles" else load(here, None, path)
    except UserError as error:
        told(error, path)
        return
    assert found.profiles
    assert found.servers


@cache
def _definition_names() -> tuple[str, ...]:
    found: dict[str, None] = {}
    waiting: list[Any] = [packaged(f"{kind}.json") for kind in ("client-profiles", "server-definitions")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found |= dict.fromkeys(value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return tuple(found)


def definition_seeds() -> list[bytes]:
    clients, servers = packaged("client-profiles.json"), packaged("server-definitions.json")
    singles = [b"\0" + RAW + json.dumps({name: clients[name]}).encode() for name in list(clients)[1:8]]
    return [
        *singles,
        *(b"\xff" + RAW + json.dumps({name: servers[name]}).encode() for name in list(servers)[1:3]),
        b"\0" + BUILT + bytes(range(60)),
    ]


TARGETS = (
    Target(
        "registry",
        "what makes no sense is passed over, nothing alive is removed",
        check_registry,
        registry_seeds,
        (*WORDS, *(f'"{name}"' for name in REGISTRY_NAMES)),
    ),
    Target(
        "state-files",
        "a damaged one is as good as none, and can be written again",
        check_state,
        state_seeds,
        (*WORDS, *(f'"{name}"' for name in STATE_NAMES)),
    ),
    Target(
        "definitions",
        "definitions, or a sentence with the file and the place",
        check_definitions,
        definition_seeds,
        (*WORDS, '"configPaths"', '"format"', '"$schema"', '"detect"'),
        4000,
    ),
)
