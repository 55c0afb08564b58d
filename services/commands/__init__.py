"""What the commands of `loci` do, one file each."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from shared.foundation import errors

P = ParamSpec("P")
R = TypeVar("R")


def entry_point(command: Callable[P, R]) -> Callable[P, R]:
    """End a command with one clear sentence where it fails on purpose."""

    @wraps(command)
    def ended(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except errors.LociError as error:
            sys.stderr.write(f"loci: {error}\n")
            raise SystemExit(1) from None

    return ended
