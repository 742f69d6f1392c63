"""One server of `server-definitions.json`, which was checked before, as a record. Pure."""

from __future__ import annotations

from .servers import Definition, Detection, Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def server_from(name: str, data: Mapping[str, Any]) -> Server:
    detection = data["detection"]
    return Server(
        name,
        data["transport"],
        _variants(data["variants"]),
        Detection(
            keys=tuple(detection["keyPatterns"]),
            commands=tuple(detection.get("commandPatterns") or ()),
            urls=tuple(detection.get("urlPatterns") or ()),
            weak_urls=tuple(detection.get("weakUrlPatterns") or ()),
            weak_keys=tuple(detection.get("weakKeyPatterns") or ()),
        ),
        data.get("runner", ""),
        {runner: _variants(variants) for runner, variants in data.get("runners", {}).items()},
    )


def _variants(data: Mapping[str, Any]) -> dict[str, Definition]:
    return {
        variant: Definition(one.get("command", ""), tuple(one.get("args", ())), one.get("env", {}), one.get("url", ""))
        for variant, one in data.items()
    }
