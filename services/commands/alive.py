"""Check whether the process of this container is alive, whichever of Loci's processes it is.

One image runs all of them, so one check must suit each. A worker and beat write a heartbeat to the
file that the settings name; the gateway and Flower answer HTTP. No database is asked: a probe that
fails with the broker would restart every process at once, and that would help none of them.
"""

from services.local import http_probe
from shared.foundation import config, errors
from shared.infra import heartbeat

_TIMEOUT_SECONDS = 5.0


def check_alive(max_age_seconds: float) -> None:
    """Return if there is a heartbeat of at most `max_age_seconds`, or without any, an HTTP response.

    Raise errors.Unavailable otherwise.
    """
    settings = config.load()
    age_seconds = heartbeat.age_seconds(settings.heartbeat_file)
    if age_seconds is None and not _answers_http(settings):
        raise errors.Unavailable("this process", "it writes no heartbeat and answers no request")
    if age_seconds is not None and age_seconds > max_age_seconds:
        raise errors.Unavailable("this process", f"its last heartbeat is {age_seconds:.0f} seconds old")


def _answers_http(settings: config.Settings) -> bool:
    probes = ((settings.port, "/healthz"), (settings.flower_port, "/healthcheck"))
    return any(http_probe.responds_ok("127.0.0.1", port, path, _TIMEOUT_SECONDS) for port, path in probes)
