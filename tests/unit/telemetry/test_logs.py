"""Logs are JSON and quote no message of an exception."""

import json
import subprocess
import sys

PROGRAM = """
import logging, structlog
from shared.foundation import config
from shared.infra.telemetry import logs

logs.set_up(config.load(redis_url="redis://x", log_level="DEBUG"))
structlog.get_logger().debug("own event", rows=3)
with structlog.contextvars.bound_contextvars(request_id="r1"):
    library = logging.getLogger("some.library")
    library.debug("sends the secret")
    library.warning("a %s", "warning")
    try:
        raise ValueError("the secret")
    except ValueError:
        library.exception("failed")
        structlog.get_logger().exception("own failure")
"""


def test_every_line_is_json_with_the_bound_ids_and_without_messages_of_exceptions() -> None:
    completed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in completed.stderr.splitlines()]
    assert [event["event"] for event in events] == ["own event", "a warning", "failed", "own failure"]
    assert "secret" not in completed.stderr
    assert "request_id" not in events[0]
    assert {event["request_id"] for event in events[1:]} == {"r1"}
    for event in events[2:]:
        assert event["error"] == "ValueError"
        assert event["where"] == ["<string>:13 <module>"]
    assert events[1]["logger"] == "some.library"
