"""Do a request once: its response is stored in the transaction that did the work.

    async with resources.transaction(tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            tx.index_repeated(…)
            return request.stored
        …
        await request.store(response)

A request that is repeated with its key gets the stored response. Before that, the capability writes
through to the index what the first request left unindexed after its commit. Everything else that the
first request left undone is a due job, which a worker finishes.

There is no state "running" that could get stuck. While the first request runs, it holds an advisory
lock that ends with its transaction; a second request that meets the lock gets errors.StillRunning.
"""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.foundation import errors
from shared.infra.transaction import Transaction
from shared.platform.idempotency import queries


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The identity of a request: its route, the caller's own key, and a digest of the body."""

    route: str
    key: str
    digest: bytes

    @property
    def stored_name(self) -> tuple[str, str]:
        """The route and the key of the row. It has no word of a caller, so no erasure has to reach it."""
        return "sha256", hashlib.sha256(f"{self.route}\x00{self.key}".encode()).hexdigest()

    @property
    def request_id(self) -> str:
        """A text of fixed length that identifies the request, for databases that store no response."""
        identity = b"\x00".join([self.route.encode(), self.key.encode(), self.digest])
        return hashlib.sha256(identity).hexdigest()


class IdempotentRequest:
    """A request within the transaction that does its work.

    `stored` is the response of an earlier request with the same key, or None if there was none.
    """

    def __init__(self, tx: Transaction, key: IdempotencyKey | None, stored: Any | None) -> None:
        self.stored = stored
        self.has_response = stored is not None
        self._tx = tx
        self._key = key

    async def store(
        self,
        body: Any,
        *,
        record_ids: Sequence[str] = (),
        user_id: str | None = None,
        expires_at: datetime | None = None,
    ) -> None:
        """Store the response.

        It is erased together with any of the records, whose text it repeats, and with the user. It is not
        repeated once one of these memories or sessions has expired, nor after `expires_at`: the least expiry
        of what else it shows.
        Raise RuntimeError if the request has a response already.
        """
        if self.has_response:
            raise RuntimeError("this request has a response already")
        self.has_response = True
        if self._key is None:
            return
        route, key = self._key.stored_name
        row_key = {"tenant": self._tx.tenant, "route": route, "key": key}
        response = {"body": body, "record_ids": list(record_ids), "user_id": user_id}
        response |= {"expires_at": expires_at, "request_digest": self._key.digest}
        await queries.add(self._tx, row_key | response)


@asynccontextmanager
async def idempotent(tx: Transaction, key: IdempotencyKey | None) -> AsyncIterator[IdempotentRequest]:
    """Run a block for a request once.

    The block must end with a response, stored before or within it, or with an exception; otherwise
    RuntimeError is raised. A request without a key is always executed. It must store its response all
    the same, so that a route that forgets to is noticed without a key, too.
    """
    request = IdempotentRequest(tx, key, await find_stored(tx, key))
    yield request
    if not request.has_response:
        raise RuntimeError("an idempotent request ended without a response")


async def find_stored(tx: Transaction, key: IdempotencyKey | None) -> Any | None:
    """Return the stored response to this request, or None if the request must be executed now.

    Raise errors.StillRunning while another request with the key runs. Raise errors.KeyUsed when the key was
    used with another body, or when the response has been erased or something that it shows has expired.
    """
    if key is None:
        return None
    if not await queries.try_lock(tx, key.route, key.key):
        raise errors.StillRunning
    # A process of an older version stores it by its own words; such a row stays for a day.
    row = await queries.find(tx, key.stored_name, (key.route, key.key))
    if row is None:
        return None
    if row["request_digest"] != key.digest:
        raise errors.KeyUsed("this Idempotency-Key was used with another body")
    if row["body"] is None:
        raise errors.KeyUsed("what this request stored has been erased since")
    if row["has_expired"]:
        raise errors.KeyUsed("something that this request answered has expired since")
    return row["body"]
