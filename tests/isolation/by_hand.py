"""The former name of `raw_rows`, until tests/architecture imports the new one."""

from tests.isolation.raw_rows import fill

__all__ = ["fill"]
