"""Showing a page to the user, where there is a screen. Nobody waits for the browser, and nothing fails with it."""

from __future__ import annotations

import sys

from .log import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def has_screen(platform: str, environ: Mapping[str, str]) -> bool:
    """Without one a browser of the terminal would be started, or an error would be shown."""
    if platform in ("win32", "darwin"):
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def show(url: str, environ: Mapping[str, str]) -> bool:
    """Have the user's browser open it; whether that was tried."""
    if not has_screen(sys.platform, environ):
        return False
    import subprocess

    try:
        # Apart, because some browsers do not return until they are closed, and some write to their terminal.
        subprocess.Popen(
            [sys.executable, "-P", "-m", "webbrowser", url],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        log.debug(f"no browser can be started: {error}")
        return False
    return True
