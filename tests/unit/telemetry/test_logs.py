"""Logs are JSON, in the words of whoever logs, and quote no exception (issue 5, point 4)."""

import json
import subprocess
import sys

PROGRAM = """
import logging, structlog
from shared.foundation import config
from shared.infra.telemetry import logs

logs.set_up(config.load(redis_url="redis://x", log_level="DEBUG"))
structlog.get_logger().debug("ours", rows=3)
with structlog.contextvars.bound_contextvars(request_id="r1"):
    library = logging.getLogger("some.library")
    library.debug("sends the canary")
    library.warning("a %s", "warning")
    try:
        raise ValueError("the canary")
    except ValueError:
        library.exception("failed")
        structlog.get_logger().exception("ours failed")
"""


def test_every_line_is_json_with_the_bound_ids_and_without_messages_of_exceptions() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [one["event"] for one in told] == ["ours", "a warning", "failed", "ours failed"]
    assert "canary" not in ended.stderr
    assert "request_id" not in told[0]
    assert {one["request_id"] for one in told[1:]} == {"r1"}
    for one in told[2:]:
        assert one["error"] == "ValueError"
        assert one["where"] == ["<string>:13 <module>"]
    assert told[1]["logger"] == "some.library"
