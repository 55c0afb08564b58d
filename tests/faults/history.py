"""What agents were told, and whether it is true afterwards.

Every save is noted before it is sent and again when it is acknowledged. When the faults are over
and the queues are empty, each acknowledged save must stand exactly once, itself or what it was
enriched into, and be found by its own word. The seed stands in every message of failure.
"""

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.standins.wire import Call

_AT_ONCE = 8
_PAUSE = 0.05


def seed() -> int:
    """Return the seed of a run: LOCI_FAULTS_SEED to repeat one, else a new one."""
    return int(os.environ.get("LOCI_FAULTS_SEED") or random.SystemRandom().randrange(1 << 32))


@dataclass
class Save:
    """One memory that an agent wants kept, under one Idempotency-Key for all its tries."""

    word: str
    tries: int = 0
    entry: dict[str, Any] | None = None

    @property
    def content(self) -> str:
        return f"The lamp {self.word} stands in the hall."

    @property
    def id(self) -> str:
        """The id of the acknowledged entry."""
        assert self.entry is not None
        return str(self.entry["id"])


@dataclass
class Tally:
    """What a run comes to: printed at the end, since these figures are the claim."""

    name: str
    faults: int = 0
    acknowledged: int = 0
    retried: int = 0
    lost: int = 0
    doubled: int = 0


@dataclass
class History:
    """The saves of one tenant."""

    client: httpx.AsyncClient
    seed: int = field(default_factory=seed)
    saves: list[Save] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    @property
    def acknowledged(self) -> list[Save]:
        return [save for save in self.saves if save.entry is not None]

    async def save(self, within: float = 30, **fields: Any) -> Save:
        """Save one memory as a careful client does: until it is answered, always under the same key."""
        save = Save(f"w{self.seed:x}n{len(self.saves)}")
        self.saves.append(save)
        deadline = time.monotonic() + within
        while save.entry is None:
            assert time.monotonic() < deadline, f"seed {self.seed}: {save} was not answered in {within} s"
            save.entry = await self._try(save, fields)
        return save

    async def save_many(self, count: int, **fields: Any) -> None:
        """Save so many memories, a few at once."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one() -> None:
            async with gate:
                await self.save(**fields)

        await asyncio.gather(*(one() for _ in range(count)))

    @asynccontextmanager
    async def agents(self, count: int) -> AsyncIterator[None]:
        """Let so many agents save one memory after the other for the length of a block."""
        over = asyncio.Event()

        async def agent() -> None:
            while not over.is_set():
                await self.save()

        working = [asyncio.create_task(agent()) for _ in range(count)]
        try:
            yield
        finally:
            over.set()
            await asyncio.gather(*working)

    async def more(self, fewest: int, most: int) -> None:
        """Wait until so many more saves are acknowledged, a number drawn by the seed."""
        goal = len(self.acknowledged) + self.random.randint(fewest, most)

        async def enough() -> bool:
            return len(self.acknowledged) >= goal

        await eventually(enough, 30, f"seed {self.seed}: {goal} saves")

    async def save_batch(self, count: int, **fields: Any) -> None:
        """Save up to 1000 memories in one request."""
        saves = [Save(f"w{self.seed:x}n{len(self.saves) + number}") for number in range(count)]
        self.saves += saves
        body = {"memories": [{"content": save.content, **fields} for save in saves]}
        answer = await self.client.post("/v1/memories/batch", json=body)
        assert answer.status_code == 201, answer.text
        for save, entry in zip(saves, answer.json()["results"], strict=True):
            save.entry = entry

    async def _try(self, save: Save, fields: dict[str, Any]) -> dict[str, Any] | None:
        save.tries += 1
        try:
            answer = await self.client.post(
                "/v1/memories",
                json={"content": save.content, **fields},
                headers={"idempotency-key": save.word},
            )
        except httpx.TransportError:
            await asyncio.sleep(_PAUSE)
            return None
        if answer.status_code == 201:
            return dict(answer.json())
        assert answer.status_code == 503 or "still running" in answer.text, (self.seed, answer.text)
        assert int(answer.headers["retry-after"]) >= 1
        await asyncio.sleep(_PAUSE)
        return None

    async def check(self, name: str, faults: int = 0, searches: int = 200) -> Tally:
        """Fail unless every acknowledged save stands exactly once and is found; return the figures.

        Of more saves than `searches`, so many drawn by the seed are searched for.
        """
        live = await self.listed()
        archived = {one["id"]: one for one in await self.listed(state="archived")}
        places = {save.word: _standing(save, live, archived) for save in self.acknowledged}
        texts = Counter(one["content"] for one in live)
        lost = [word for word, ids in places.items() if not ids]
        doubled = [text for text, times in texts.items() if times > 1]
        doubled += [one["content"] for one in live if one["reinforcement_count"] > 1]
        assert not lost, f"seed {self.seed}: lost {len(lost)}: {lost[:3]}"
        assert not doubled, f"seed {self.seed}: doubled {len(doubled)}: {doubled[:3]}"
        drawn = self.random.sample(sorted(places), min(searches, len(places)))
        await self._check_found({word: places[word] for word in drawn})
        retried = sum(save.tries > 1 for save in self.acknowledged)
        return Tally(name, faults, len(places), retried, len(lost), len(doubled))

    async def _check_found(self, places: dict[str, set[str]]) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def missing(word: str, ids: set[str]) -> str | None:
            async with gate:
                return None if ids & await self.found(word) else word

        searched = await asyncio.gather(*(missing(word, ids) for word, ids in places.items()))
        lacking = [word for word in searched if word is not None]
        assert not lacking, f"seed {self.seed}: {len(lacking)} not found by search: {lacking[:3]}"

    async def found(self, word: str, **expected: Any) -> set[str]:
        """Search for a word and return the ids; `expected` are fields that the answer must have."""
        answer = await self.client.post("/v1/memories/search", json={"query": word, "limit": 5})
        assert answer.status_code == 200, (self.seed, answer.text)
        told = answer.json()
        assert {name: told[name] for name in expected} == expected, (self.seed, word)
        return {one["id"] for one in told["results"]}

    async def listed(self, **filters: str) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": 100, **filters}
        while True:
            answer = await self.client.get("/v1/memories", params=query)
            assert answer.status_code == 200, (self.seed, answer.text)
            page = answer.json()
            listed += page["results"]
            if page["next_cursor"] is None:
                return listed
            query["cursor"] = page["next_cursor"]

    async def quiet(self, within: float) -> None:
        """Wait until nothing is pending for the tenant."""

        async def done() -> bool:
            return not any((await self.status())["pending"].values())

        await eventually(done, within, f"seed {self.seed}: pending")

    async def status(self) -> dict[str, Any]:
        answer = await self.client.get("/v1/status")
        assert answer.status_code == 200, (self.seed, answer.text)
        return dict(answer.json())


def _standing(save: Save, live: Iterable[dict[str, Any]], archived: dict[str, Any]) -> set[str]:
    """Return the ids of the entry that holds a save now, or of those that it was enriched into."""
    ids = {one["id"] for one in live}
    raw = archived.get(save.id)
    if raw is None:
        return {save.id} & ids
    successors = set(raw["superseded_by"])
    return successors if successors <= ids else set()


async def eventually(condition: Callable[[], Awaitable[object]], within: float, what: str) -> None:
    """Wait for a condition; fail with `what` after `within` seconds."""
    deadline = time.monotonic() + within
    while not await condition():
        assert time.monotonic() < deadline, f"{what}: not within {within} s"
        await asyncio.sleep(0.02)


def split_in_two(call: Call) -> str:
    """Reply as a good model: two entries for each note, both with its word."""
    note = json.loads(call.body["messages"][-1]["content"])["content"]
    items = [
        {"content": f"{note} ({part})", "category": "general", "tags": [part]} for part in ("one", "two")
    ]
    return json.dumps(items)
