"""Runs a Host, or a controller command such as `--command start`, from the command line."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence

from ..issues import UserError
from ..system.log import log
from ..system.text import visible
from .banner import say
from .flags import HostFlags, read_flags, usage


def main(arguments: Sequence[str], control: Callable[[HostFlags], int]) -> int:
    """Run the Host; `control` runs the controller commands, which belong to the command line above this package."""
    gc.enable()  # commands run without it, because they end soon; a Host runs for days
    if sys.platform == "win32":
        from ..system.standard_streams import print_utf8

        print_utf8()
    if any(argument in ("--help", "-h") for argument in arguments):
        say(usage())
        return 0
    try:
        flags = read_flags(arguments, os.environ)
        if flags.log_level is not None:
            log.level = flags.log_level
        if flags.verb:
            return control(flags)
        log.stamped = True
        from .server import serve

        return serve(flags)
    except UserError as error:
        if sys.stderr is not None:
            sys.stderr.write(visible(error.explanation) + "\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
