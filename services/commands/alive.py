"""Tell whether the process of this container lives, whichever of Loci's processes it is.

One image runs them all, so one question must suit each: a worker and beat show a heartbeat in the
file that is set for it, the gateway and Flower answer HTTP. No store is asked: a probe that fails
with the broker would have every process restarted at once, and none would be any better for it.
"""

from services.local import http_probe
from shared.foundation import config, errors
from shared.infra import heartbeat

_PATIENCE = 5.0  # seconds for an answer


def check_alive(max_age: float) -> None:
    """Raise errors.Unavailable unless there is a heartbeat of at most `max_age` seconds, or an answer."""
    settings = config.load()
    age = heartbeat.age_seconds(settings.heartbeat_file)
    if age is None and not _answers(settings):
        raise errors.Unavailable("this process", "it shows no heartbeat and answers no request")
    if age is not None and age > max_age:
        raise errors.Unavailable("this process", f"its last heartbeat is {age:.0f} seconds old")


def _answers(settings: config.Settings) -> bool:
    asked = ((settings.port, "/healthz"), (settings.flower_port, "/healthcheck"))
    return any(http_probe.responds_ok("127.0.0.1", port, path, _PATIENCE) for port, path in asked)
