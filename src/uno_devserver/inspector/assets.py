"""The files of the page, as they lie in the package; nothing else can be read through here."""

from __future__ import annotations

import os
import re

from ..protocol.http.messages import Response
from ..system.files import FileProblem, read_bytes

FOLDER = os.path.join(os.path.dirname(__file__), "page")
PREFIX = "/assets/"
# Nothing that a tool answers can run here, and nothing is fetched from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# For every answer of the server.
HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),  # the address holds the token
    ("X-Content-Type-Options", "nosniff"),
)
TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FRESH = ("Cache-Control", "no-store")  # another version may answer on this port a minute later
_NAME = re.compile(r"(?:[a-z][a-z0-9-]*/)?[a-z][a-z0-9-]*\.(?P<kind>css|js|svg)")

NOT_FOUND = Response(404, b'{"error": "there is nothing here"}', (("Content-Type", "application/json"),))


def page() -> Response:
    return _file("index.html", "html")


def refused_page() -> Response:
    return _file("refused.html", "html", 401)


def asset(name: str) -> Response:
    """The file of that name, a path below the folder of the page."""
    found = _NAME.fullmatch(name)
    return _file(name, found["kind"]) if found else NOT_FOUND


def _file(name: str, kind: str, status: int = 200) -> Response:
    try:
        return Response(status, read_bytes(os.path.join(FOLDER, name)), (("Content-Type", TYPES[kind]), FRESH))
    except (FileNotFoundError, FileProblem):
        return NOT_FOUND
