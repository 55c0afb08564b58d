"""How throughput follows the workers: `python -m benchmarks.scale [--entries 2000] [--workers 1,2,4,2]`.

Raw memories wait for enrichment by a model that takes two seconds per call. Meanwhile worker processes
are started, and stopped with SIGTERM. The run has a part for each number of workers. A part shows how
many calls per second are possible (workers x LOCI_LLM_CONCURRENCY / seconds of a call), how many the
model received once all workers were running, and `job_backlog`, which the scaler on Kubernetes reads.
The run fails if a memory is missing or enriched twice, or if a part differs by more than a tenth.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from statistics import linear_regression
from typing import Annotated, Any

import asyncpg
import typer

from benchmarks import local_stack, machine, table
from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection
from benchmarks.worker_pool import WorkerPool
from services.local.programs import LOCI, Programs, loci
from shared.foundation import config
from tests.standins.behaviours import Reply, Slow
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT, Call

_BATCH = 1000
_PAUSE = 0.1
_MAX_PART_SECONDS = 600.0  # seconds for a part
_TOLERANCE = 0.1
_HEAD = (
    "workers",
    "calls at once",
    "expected calls/s",
    "measured",
    "ratio",
    "due + running at its begin",
    "at its end",
)


@dataclass(frozen=True, slots=True)
class Part:
    """The figures for one number of workers."""

    workers: int
    expected: float
    measured: float
    backlog: tuple[int, int]

    @property
    def ratio(self) -> float:
        """The measured rate divided by the expected one."""
        return self.measured / self.expected


def main(
    entries: Annotated[int, typer.Option(help="Number of raw memories.")] = 2000,
    workers: Annotated[str, typer.Option(help="Comma-separated: processes in each part.")] = "1,2,4,2",
    concurrency: Annotated[int, typer.Option(help="LOCI_LLM_CONCURRENCY.")] = 8,
    seconds: Annotated[float, typer.Option(help="Seconds of a model call.")] = 2,
) -> None:
    """Measure enrichment while workers start and stop, check every memory, and print a table."""
    print(machine.describe())
    print(f"{entries} entries, {seconds:g} s a call, LOCI_LLM_CONCURRENCY={concurrency}\n", flush=True)
    with ModelServer(chat_default=Slow(seconds, Reply(_kept))) as model:
        values: dict[str, Any] = {
            "llm_base_url": model.url,
            "llm_model": "slow",
            "llm_concurrency": concurrency,
            "dream_enabled": False,
            "judge_calibration_tokens": 0,
        }
        with local_stack.running(commands=_without_enrichment(), **values) as running:
            run = Run(running, model, concurrency, seconds)
            parts, faults = asyncio.run(run.through(entries, [int(count) for count in workers.split(",")]))
    table.show(_HEAD, [_row(part, concurrency) for part in parts])
    print(_verdict(entries, faults))
    if faults or any(abs(part.ratio - 1) > _TOLERANCE for part in parts):
        raise SystemExit(1)


def _kept(call: Call) -> str:
    return json.dumps([{"content": f"{_note(call)} Kept."}])


def _note(call: Call) -> str:
    return str(json.loads(call.body["messages"][-1]["content"])["content"])


def _without_enrichment() -> Programs:
    rest = loci("workers", "work", "--queues", "embedding,documents,summary,dream,sweep")
    return replace(LOCI, background=(rest, loci("beat", "beat")))


def _row(part: Part, concurrency: int) -> list[str]:
    figures = [str(part.workers * concurrency), f"{part.expected:.1f}", f"{part.measured:.1f}"]
    return [str(part.workers), *figures, f"{part.ratio:.2f}", *map(str, part.backlog)]


def _verdict(entries: int, faults: list[str]) -> str:
    success = f"each of {entries} memories was enriched once and has one successor; none is pending"
    return "\n".join(faults) or success


class Run:
    """One run on a stack, observed at the model and at the queue."""

    def __init__(self, running: BenchmarkStack, model: ModelServer, concurrency: int, seconds: float) -> None:
        self._running = running
        self._model = model
        self._concurrency = concurrency
        self._seconds = seconds
        self._pool = WorkerPool(running.settings)
        self._backlogs: list[int] = []

    async def through(self, entries: int, line_up: list[int]) -> tuple[list[Part], list[str]]:
        """Save, drain with each number of workers in turn, and return the parts and the errors."""
        connection = Connection(self._running.url, self._running.key)
        notes = [f"Lamp {number} stands in hall {number}." for number in range(entries)]
        for start in range(0, entries, _BATCH):
            batch = [{"content": note} for note in notes[start : start + _BATCH]]
            await connection.send("POST", "/v1/memories/batch", {"memories": batch})
        try:
            async with self._watched():
                parts = [await self._part(*share) for share in _shares(entries, line_up)]
                await connection.settled()
        finally:
            await self._pool.resize(0)
        faults = [
            *self._check_calls(notes),
            *self._check_backlog(),
            *await _check_memories(connection, notes),
        ]
        await connection.close()
        return parts, faults

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        address = config.require_setting(self._running.settings.postgres_url, "LOCI_POSTGRES_URL")
        database = await asyncpg.connect(address)
        watching = asyncio.create_task(self._watch(database))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])
            await database.close()

    async def _watch(self, database: asyncpg.Connection) -> None:
        while True:
            self._backlogs.append(await database.fetchval("SELECT job_backlog(ARRAY['enrich'])"))
            await asyncio.sleep(_PAUSE)

    async def _part(self, workers: int, until: int) -> Part:
        await self._pool.resize(workers)
        await self._calls_of_all(until)
        started_at, backlog = time.monotonic(), self._backlogs[-1]
        await asyncio.to_thread(self._model.wait_for_calls, until, _MAX_PART_SECONDS, CHAT)
        steady = [call.at for call in self._model.chat_calls[:until] if call.at >= started_at]
        measured = linear_regression(steady, range(len(steady))).slope
        expected = workers * self._concurrency / self._seconds
        part = Part(workers, expected, measured, (backlog, self._backlogs[-1]))
        print(f"{workers} workers: {measured:.1f} calls a second, {part.backlog[1]} left", flush=True)
        return part

    async def _calls_of_all(self, until: int) -> None:
        """Wait until each worker has filled all its slots and completed a call in each."""
        while True:
            calls = Counter(_key(call) for call in self._model.chat_calls)
            if all(calls[name] > self._concurrency for name in self._pool.names):
                return
            if calls.total() >= until:
                raise SystemExit("the part ended before its workers were there: it needs more entries")
            await asyncio.sleep(_PAUSE)

    def _check_calls(self, notes: list[str]) -> list[str]:
        calls = Counter(_note(call) for call in self._model.chat_calls)
        wrong = [note for note in notes if calls[note] != 1]
        return [f"{len(wrong)} memories were not sent once: {wrong[:3]}"] if wrong else []

    def _check_backlog(self) -> list[str]:
        rises = sum(after > before for before, after in zip(self._backlogs, self._backlogs[1:], strict=False))
        return [f"due + running rose {rises} times"] if rises else []


def _shares(entries: int, line_up: list[int]) -> list[tuple[int, int]]:
    """Return for each part its workers and the total number of calls at its end."""
    ends = [entries * sum(line_up[: position + 1]) // sum(line_up) for position in range(len(line_up))]
    return list(zip(line_up, ends, strict=True))


def _key(call: Call) -> str:
    return call.headers.get("authorization", "").removeprefix("Bearer ")


async def _check_memories(connection: Connection, notes: list[str]) -> list[str]:
    """Return the errors in the enriched memories."""
    live, archived = await _listed(connection, "final"), await _listed(connection, "archived")
    successors = {raw["content"]: raw["superseded_by"] for raw in archived}
    texts = {memory["id"]: memory["content"] for memory in live if memory["reinforcement_count"] == 1}
    lost = [
        note for note in notes if [texts.get(id_) for id_ in successors.get(note, [])] != [f"{note} Kept."]
    ]
    faults = [f"{len(lost)} memories lack their one successor: {lost[:3]}"] if lost else []
    more = len(live) - len(notes)
    return [*faults, *([f"{more} successors too many"] if more else [])]


async def _listed(connection: Connection, state: str) -> list[dict[str, Any]]:
    memories: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = await connection.send("GET", f"/v1/memories?limit=100&state={state}{cursor}")
        memories += page["results"]
        if page["next_cursor"] is None:
            return memories
        cursor = f"&cursor={page['next_cursor']}"


if __name__ == "__main__":
    typer.run(main)
