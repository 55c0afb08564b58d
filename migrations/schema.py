"""Every table there is, gathered so that the migrations can be compared with the code."""

from shared.infra.postgres import metadata

__all__ = ["metadata"]
