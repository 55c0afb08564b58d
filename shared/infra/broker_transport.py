"""Send task messages with Celery's transport alone: a process that only publishes does not import Celery.

A message is a task of Celery's message protocol, version 2, which is stable and documented by Celery. It has
what a worker and Flower read; for every other option a worker assumes what Celery's own sender would write.
"""

import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import uuid_utils
from kombu.connection import Connection
from kombu.exceptions import OperationalError
from kombu.messaging import Producer

from shared.foundation import errors

_CONNECT_SECONDS = 4
_NO_LINKS = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


class MessageLost(errors.LociError):
    """The broker did not take a message. Its text is the name of the failure."""


class BrokerTransport:
    """A connection to the broker, which is opened by the first message and again after it broke."""

    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        self._connection = Connection(
            address, transport_options=dict(options), connect_timeout=_CONNECT_SECONDS
        )

    def send(
        self,
        queue: str,
        task: str,
        arguments: Mapping[str, Any],
        headers: Mapping[str, str],
        expires_seconds: float,
    ) -> None:
        """Send a task with keyword arguments to a queue. No worker runs it after `expires_seconds`.

        Raises MessageLost.
        """
        task_id = str(uuid_utils.uuid4())
        expires_at = datetime.now(UTC) + timedelta(seconds=expires_seconds)
        try:
            Producer(self._connection.default_channel, auto_declare=False).publish(
                ((), dict(arguments), _NO_LINKS),
                exchange="",
                routing_key=queue,
                serializer="json",
                headers=_headers_of(task, task_id, arguments, expires_at) | dict(headers),
                correlation_id=task_id,
                reply_to="",
                expiration=expires_seconds,
            )
        except (OperationalError, *self._connection.connection_errors, OSError) as error:
            raise MessageLost(type(error).__name__) from error


def _headers_of(
    task: str, task_id: str, arguments: Mapping[str, Any], expires_at: datetime
) -> dict[str, Any]:
    return {
        "lang": "py",
        "task": task,
        "id": task_id,
        "root_id": task_id,
        "parent_id": None,
        "group": None,
        "shadow": None,
        "eta": None,
        "expires": expires_at.isoformat(),
        "retries": 0,
        "timelimit": [None, None],
        "argsrepr": "()",
        "kwargsrepr": repr(dict(arguments)),
        "origin": f"gen{os.getpid()}@{socket.gethostname()}",
        "ignore_result": None,
    }
