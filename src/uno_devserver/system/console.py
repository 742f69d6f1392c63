"""The console of Windows, which takes escape sequences for text until a program asks for something else.

The decision is pure and tested; the calls of the system below it have not been run on Windows by us.
"""

from __future__ import annotations

ENABLE_VIRTUAL_TERMINAL_PROCESSING = 0x0004


def mode_with_escapes(mode: int) -> int | None:
    """What is to be set, given the console's mode; None: nothing."""
    if mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING:
        return None
    return mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING


def shows_escapes(descriptor: int) -> bool:
    """Whether Windows shows them there, from now on. Where that fails, text without colours is text, too."""
    import ctypes
    import msvcrt

    try:
        kernel, handle = ctypes.windll.kernel32, msvcrt.get_osfhandle(descriptor)  # type: ignore[attr-defined]
        mode = ctypes.c_uint32()
        if not kernel.GetConsoleMode(ctypes.c_void_p(handle), ctypes.byref(mode)):
            return False
        wanted = mode_with_escapes(mode.value)
        return wanted is None or bool(kernel.SetConsoleMode(ctypes.c_void_p(handle), wanted))
    except OSError:
        return False
