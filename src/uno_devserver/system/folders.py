"""The folders of the user and of this program, by .NET's rules, so that files are shared with .NET programs.

The rules are pure functions of platform, environment and home, so those of each system are tested on every system.
"""

from __future__ import annotations

import os
import sys

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PRODUCT = "uno.devserver"
VENDOR = "Uno Platform"
REGISTRY = "DevServers"
DATA_HOME = "XDG_DATA_HOME"


class Folders(Value):
    """The special folders of .NET's Environment.GetFolderPath, whether they exist or not."""

    home: str
    application_data: str
    local_application_data: str
    common_application_data: str

    @property
    def state(self) -> str:
        """The folder for this program's own files: caches and the state of workspaces."""
        return os.path.join(self.local_application_data, VENDOR, PRODUCT)

    @property
    def registry(self) -> str:
        """The folder of the `devserver-<pid>.json` files that all launchers share."""
        return os.path.join(self.local_application_data, VENDOR, REGISTRY)


def folders(environ: Mapping[str, str] | None = None) -> Folders:
    """The folders of this user on this machine."""
    environ = os.environ if environ is None else environ
    if not os.path.isabs(environ.get("HOME", "/")):
        # .NET accepts a relative home, which would put the files into the current folder.
        environ = {name: value for name, value in environ.items() if name != "HOME"}
    return folders_on(sys.platform, environ, _passwd_home)


def folders_on(platform: str, environ: Mapping[str, str], passwd_home: Callable[[], str]) -> Folders:
    if platform == "win32":
        home = environ.get("USERPROFILE") or passwd_home()
        return Folders(
            home,
            environ.get("APPDATA") or home + "\\AppData\\Roaming",
            environ.get("LOCALAPPDATA") or home + "\\AppData\\Local",
            environ.get("PROGRAMDATA") or "C:\\ProgramData",
        )
    home = environ.get("HOME") or passwd_home()
    if platform == "darwin":
        support = _below(home, "Library/Application Support")
        return Folders(home, support, support, "/usr/share")
    return Folders(
        home,
        _xdg(environ, "XDG_CONFIG_HOME", _below(home, ".config")),
        _xdg(environ, DATA_HOME, _below(home, ".local/share")),
        "/usr/share",
    )


def _below(home: str, path: str) -> str:
    return home + path if home.endswith("/") else f"{home}/{path}"


def _xdg(environ: Mapping[str, str], name: str, default: str) -> str:
    # XDG and .NET ignore a relative path.
    value = environ.get(name, "")
    return value if value.startswith("/") else default


def _passwd_home() -> str:
    if sys.platform == "win32":
        return os.path.expanduser("~")
    import pwd  # expanduser would use HOME, which is empty or ignored here

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # the user has no passwd entry, as in some containers
        return "/"


def relative_path(path: str, start: str, relpath: Callable[[str, str], str] | None = None) -> str:
    """The path from the folder `start`; on another drive of Windows, from where none leads there, `path` itself."""
    try:
        return (relpath or os.path.relpath)(path, start)
    except ValueError:
        return path
