"""A server made with the official SDK that asks the authorization server about each token. Prints its port.

python protected_server.py <issuer> <audience or ''> <scopes>   # it ends with its input
"""

from __future__ import annotations

import os
import socket
import sys
import threading

import httpx2
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

RESOURCE_SERVER = ("resource-server", "resource-server-secret")


class Introspection:
    """Asks the authorization server. Implements the SDK's `TokenVerifier`."""

    def __init__(self, issuer: str, audience: str) -> None:
        self._endpoint = f"{issuer}/token/introspection"
        self._audience = audience
        self._http = httpx2.AsyncClient(timeout=20)  # one for all: making it takes longer than asking

    async def verify_token(self, token: str) -> AccessToken | None:
        answer = (await self._http.post(self._endpoint, data={"token": token}, auth=RESOURCE_SERVER)).json()
        if not answer.get("active") or answer.get("aud") != self._audience:
            return None
        return AccessToken(
            token=token,
            client_id=answer["client_id"],
            scopes=answer.get("scope", "").split(),
            expires_at=answer["exp"],
            resource=answer["aud"],
            subject=answer["sub"],
        )


def main() -> None:
    issuer, audience, scopes = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    settings = AuthSettings.model_validate(
        {"issuer_url": issuer, "resource_server_url": url, "required_scopes": scopes.split()}
    )
    server = MCPServer("protected", auth=settings, token_verifier=Introspection(issuer, audience or url))

    @server.tool()
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    print(port, flush=True)
    application = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(application, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
