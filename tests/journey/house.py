"""The former name of `stack`, until tests/telemetry imports the new one."""

from tests.journey.stack import TestStack, standing

__all__ = ["TestStack", "standing"]
