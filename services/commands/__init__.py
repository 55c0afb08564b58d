"""The implementation of the `loci` commands, one module per command or group."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from shared.foundation import errors

P = ParamSpec("P")
R = TypeVar("R")


def run_as_command(command: Callable[P, R]) -> Callable[P, R]:
    """Print an error of Loci as one line and exit with 1. Other errors keep their stack trace."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except errors.LociError as error:
            sys.stderr.write(f"loci: {error}\n")
            raise SystemExit(1) from None

    return run
