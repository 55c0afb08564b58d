"""How much a test repeats: enough to notice a fault in every run, and more with LOCI_LONG=1.

`make faults` runs the long form of every test that calls `in_long_form`, and with it those of properties: the
run of all tests gives them the same examples each time, the long form new ones.
"""

import os
from typing import TypeVar

IS_LONG = "LOCI_LONG" in os.environ
_T = TypeVar("_T")


def in_long_form(long: _T, *, otherwise: _T) -> _T:
    """Return an amount for the long form, or the other one for the run of all tests."""
    return long if IS_LONG else otherwise
