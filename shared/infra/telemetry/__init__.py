"""Logs and traces of a process. Neither contains the content of any memory."""

import os

import structlog

from shared.foundation import unknown_settings
from shared.foundation.config import Settings
from shared.infra.telemetry import logs, traces

log = structlog.get_logger()


def set_up(settings: Settings, process: str) -> None:
    """Set up the logs and traces of this process, a `gateway` or a `worker`.

    Warn about each variable that begins with `LOCI_` and is no setting: a misspelt one has no effect.
    Raises errors.Misconfigured if traces are switched on but cannot be sent.
    """
    logs.set_up(settings)
    traces.set_up(settings, process)
    for variable, nearest in unknown_settings.unknown_variables(os.environ).items():
        log.warning("unknown_setting", variable=variable, nearest=nearest)
