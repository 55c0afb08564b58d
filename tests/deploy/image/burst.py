"""Many agents at once at one gateway whose pool is as small as the manifests make it."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.deploy.image.tools import Failed
from tests.deploy.managed_postgres import ManagedPostgres

_CLIENTS, _TURNS = 32, 10
_COUNT = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'loci_login'"


def measure(url: str, key: str, postgres: ManagedPostgres) -> str:
    """Send turns from many clients at once. Return a line with their number, time and Postgres connections.

    A turn may be refused with 503 after waiting 5 seconds for a connection, as on a machine that does much
    else. Raises Failed if that happens to more than one in a hundred, or if a response is another one.
    """
    started = time.monotonic()
    with ThreadPoolExecutor(_CLIENTS) as threads:
        conversations = [threads.submit(_converse, url, key, f"burst-{number}") for number in range(_CLIENTS)]
        most = 0
        while not all(conversation.done() for conversation in conversations):
            most = max(most, int(postgres.psql(_COUNT, url=postgres.url("loci"))))
    statuses = [status for conversation in conversations for status in conversation.result()]
    refused = statuses.count(503)
    if set(statuses) - {200, 503} or refused > len(statuses) / 100:
        raise Failed(f"the {len(statuses)} turns were answered with {Counter(statuses)}")
    seconds = time.monotonic() - started
    work = f"{len(statuses)} turns of {_CLIENTS} agents at once in {seconds:.1f} s, {refused} refused"
    return f"burst           {work}, {most} connections to Postgres"


def _converse(url: str, key: str, session: str) -> list[int]:
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60) as client:
        client.post("/v1/sessions", json={"id": session})
        route = f"/v1/sessions/{session}/context"
        return [client.post(route, json={"message": f"Turn {n}?"}).status_code for n in range(_TURNS)]
