"""IX3: a process without Celery sends what Celery would send."""

import base64
import json
from typing import Any
from uuid import uuid4

import pytest
from kombu.connection import Connection

from shared.foundation import config
from shared.infra.broker import celery_app
from shared.infra.broker_transport import BrokerTransport, MessageLost
from shared.infra.telemetry.span import HEADER

TASK, QUEUE, ARGUMENTS = "enrichment.enrich_pending", "enrichment", {"due_jobs": 3}
BROKER = "memory://"
DIFFERS_BY_MESSAGE = {"id", "root_id", "expires"}


def sent_message() -> dict[str, Any]:
    """Take the only message of the queue."""
    with Connection(BROKER) as connection:  # type: ignore[no-untyped-call]
        return dict(connection.default_channel._get(QUEUE))


def test_a_message_has_the_fields_and_the_body_of_celerys_own() -> None:
    BrokerTransport(BROKER, {}).send(QUEUE, TASK, ARGUMENTS, {HEADER: "trace"}, 300)
    message = sent_message()
    app = celery_app(config.load(broker_url=BROKER))
    app.send_task(TASK, kwargs=ARGUMENTS, queue=QUEUE, headers={HEADER: "trace"}, expires=300)
    celerys = sent_message()

    assert base64.b64decode(message["body"]) == base64.b64decode(celerys["body"])
    assert json.loads(base64.b64decode(message["body"]))[1] == ARGUMENTS
    for field, value in message["headers"].items():
        assert field in celerys["headers"]
        assert value == celerys["headers"][field] or field in DIFFERS_BY_MESSAGE, field
    empty = {name for name, value in celerys["headers"].items() if not value}
    assert celerys["headers"].keys() - message["headers"].keys() <= empty
    assert message["properties"].keys() == celerys["properties"].keys()
    for field in ("delivery_info", "delivery_mode", "expiration", "priority"):
        assert message["properties"][field] == celerys["properties"][field]
    assert message["headers"]["id"] == message["properties"]["correlation_id"]


def test_a_broker_that_is_away_loses_the_message_and_says_so() -> None:
    nowhere = f"redis://127.0.0.1:1/{uuid4().int % 10}"
    transport = BrokerTransport(nowhere, {"socket_connect_timeout": 1, "max_retries": 0})
    with pytest.raises(MessageLost, match="OperationalError"):
        transport.send(QUEUE, TASK, ARGUMENTS, {}, 300)
