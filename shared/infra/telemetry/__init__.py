"""What a process tells of itself: logs and traces, both without the content of any memory."""

from shared.foundation.config import Settings
from shared.infra.telemetry import logs, traces


def set_up(settings: Settings, process: str) -> None:
    """Begin logs and traces of this process, a `gateway` or a `worker`.

    Raises errors.Misconfigured when traces are wanted and cannot be sent.
    """
    logs.set_up(settings)
    traces.set_up(settings, process)
