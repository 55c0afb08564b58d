"""Logs and traces of a process. Neither contains the content of any memory."""

from shared.foundation.config import Settings
from shared.infra.telemetry import logs, traces


def set_up(settings: Settings, process: str) -> None:
    """Set up the logs and traces of this process, a `gateway` or a `worker`.

    Raises errors.Misconfigured if traces are switched on but cannot be sent.
    """
    logs.set_up(settings)
    traces.set_up(settings, process)
