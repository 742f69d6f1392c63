"""From flags to a running Host, or to a controller that looks after others."""

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
    """`control` runs the verbs of a controller: they are commands of the command line, which is above this."""
    gc.enable()  # the command line runs without: it is gone in a moment, a Host is not
    if any(argument in ("--help", "-h") for argument in arguments):
        say(usage())
        return 0
    try:
        configuration = read_flags(arguments, os.environ)
        if configuration.log_level is not None:
            log.level = configuration.log_level
        if configuration.verb:
            return control(configuration)
        log.stamped = True
        from .server import serve

        return serve(configuration)
    except UserError as error:
        if sys.stderr is not None:
            sys.stderr.write(visible(error.explanation) + "\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
