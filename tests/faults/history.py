"""Save memories during faults and check afterwards that every acknowledged save exists exactly once.

Every save is recorded before it is sent and again when it is acknowledged. When the faults are over
and the queues are empty, each acknowledged save must exist once, as it is or as the memories it was
enriched into, and be found by its own word. Every failure message contains the seed.
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
    """One memory that an agent saves, under one Idempotency-Key for all attempts."""

    word: str
    tries: int = 0
    memory: dict[str, Any] | None = None

    @property
    def content(self) -> str:
        return f"The lamp {self.word} stands in the hall."

    @property
    def id(self) -> str:
        """The id of the acknowledged memory."""
        assert self.memory is not None
        return str(self.memory["id"])


@dataclass
class RunFigures:
    """The figures of one run, printed after the tests."""

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
        return [save for save in self.saves if save.memory is not None]

    async def save(self, within: float = 30, **fields: Any) -> Save:
        """Save one memory as a careful client does: repeat under the same key until it is acknowledged."""
        save = Save(f"w{self.seed:x}n{len(self.saves)}")
        self.saves.append(save)
        deadline = time.monotonic() + within
        while save.memory is None:
            assert time.monotonic() < deadline, f"seed {self.seed}: {save} was not answered in {within} s"
            save.memory = await self._try(save, fields)
        return save

    async def save_many(self, count: int, **fields: Any) -> None:
        """Save `count` memories, a few at once."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def save_one() -> None:
            async with gate:
                await self.save(**fields)

        await asyncio.gather(*(save_one() for _ in range(count)))

    @asynccontextmanager
    async def agents(self, count: int) -> AsyncIterator[None]:
        """Let `count` agents save one memory after the other during the block."""
        stop = asyncio.Event()

        async def agent() -> None:
            while not stop.is_set():
                await self.save()

        working = [asyncio.create_task(agent()) for _ in range(count)]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*working)

    async def more(self, fewest: int, most: int) -> None:
        """Wait until `fewest` to `most` more saves are acknowledged; the seed decides how many."""
        goal = len(self.acknowledged) + self.random.randint(fewest, most)

        async def is_reached() -> bool:
            return len(self.acknowledged) >= goal

        await eventually(is_reached, 30, f"seed {self.seed}: {goal} saves")

    async def save_batch(self, count: int, **fields: Any) -> None:
        """Save up to 1000 memories in one request."""
        saves = [Save(f"w{self.seed:x}n{len(self.saves) + number}") for number in range(count)]
        self.saves += saves
        body = {"memories": [{"content": save.content, **fields} for save in saves]}
        answer = await self.client.post("/v1/memories/batch", json=body)
        assert answer.status_code == 201, answer.text
        for save, memory in zip(saves, answer.json()["results"], strict=True):
            save.memory = memory

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

    async def check(self, name: str, faults: int = 0, searches: int = 200) -> RunFigures:
        """Fail unless every acknowledged save exists exactly once and is found; return the figures.

        At most `searches` saves, chosen by the seed, are searched for.
        """
        live = await self.listed()
        archived = {memory["id"]: memory for memory in await self.listed(state="archived")}
        ids_by_word = {save.word: _current_ids(save, live, archived) for save in self.acknowledged}
        texts = Counter(memory["content"] for memory in live)
        lost = [word for word, ids in ids_by_word.items() if not ids]
        doubled = [text for text, times in texts.items() if times > 1]
        doubled += [memory["content"] for memory in live if memory["reinforcement_count"] > 1]
        assert not lost, f"seed {self.seed}: lost {len(lost)}: {lost[:3]}"
        assert not doubled, f"seed {self.seed}: doubled {len(doubled)}: {doubled[:3]}"
        sample = self.random.sample(sorted(ids_by_word), min(searches, len(ids_by_word)))
        await self._check_found({word: ids_by_word[word] for word in sample})
        retried = sum(save.tries > 1 for save in self.acknowledged)
        return RunFigures(name, faults, len(ids_by_word), retried, len(lost), len(doubled))

    async def _check_found(self, ids_by_word: dict[str, set[str]]) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def missing(word: str, ids: set[str]) -> str | None:
            async with gate:
                return None if ids & await self.search_ids(word) else word

        words = await asyncio.gather(*(missing(word, ids) for word, ids in ids_by_word.items()))
        missing_words = [word for word in words if word is not None]
        assert not missing_words, (
            f"seed {self.seed}: {len(missing_words)} not found by search: {missing_words[:3]}"
        )

    async def search_ids(self, word: str, **expected: Any) -> set[str]:
        """Search for a word and return the ids; `expected` are fields that the response must have."""
        answer = await self.client.post("/v1/memories/search", json={"query": word, "limit": 5})
        assert answer.status_code == 200, (self.seed, answer.text)
        payload = answer.json()
        assert {name: payload[name] for name in expected} == expected, (self.seed, word)
        return {result["id"] for result in payload["results"]}

    async def listed(self, **filters: str) -> list[dict[str, Any]]:
        memories: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": 100, **filters}
        while True:
            answer = await self.client.get("/v1/memories", params=query)
            assert answer.status_code == 200, (self.seed, answer.text)
            page = answer.json()
            memories += page["results"]
            if page["next_cursor"] is None:
                return memories
            query["cursor"] = page["next_cursor"]

    async def quiet(self, within: float) -> None:
        """Wait until nothing is pending for the tenant."""

        async def done() -> bool:
            return not any((await self.status())["pending"].values())

        try:
            await eventually(done, within, f"seed {self.seed}: pending")
        except AssertionError as error:
            raise AssertionError(f"{error}: {await self.status()}") from None

    async def status(self) -> dict[str, Any]:
        answer = await self.client.get("/v1/status")
        assert answer.status_code == 200, (self.seed, answer.text)
        return dict(answer.json())


def _current_ids(save: Save, live: Iterable[dict[str, Any]], archived: dict[str, Any]) -> set[str]:
    """Return the ids of the memories that contain a save now: its own, or those it was enriched into."""
    ids = {memory["id"] for memory in live}
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
    """Reply as a good model does: two memories for each note, both with its word."""
    note = json.loads(call.body["messages"][-1]["content"])["content"]
    items = [
        {"content": f"{note} ({part})", "category": "general", "tags": [part]} for part in ("one", "two")
    ]
    return json.dumps(items)
