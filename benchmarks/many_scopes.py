"""What a large installation costs a turn: `python -m benchmarks.many_scopes [--scopes 100]`.

Two stacks run side by side, each on a Qdrant server binary: one holds a scope of `--entries` memories, the
other that and 99 more. Contexts (read only) and searches of the first scope are sent to the one and to the
other in turns, so that other load on the machine meets both. Shown is the median of the rounds.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from benchmarks import local_stack, machine, table
from benchmarks.closed_loop import drive
from benchmarks.corpus import Corpus
from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection
from tests.stores.qdrant_binary import QdrantBinary

_BATCH = 500
_SEED = 7
_SESSION = "bench"
_LOADERS = 3
_HEAD = ("what", "memories", "p50 ms", "p99 ms")


def main(
    scopes: Annotated[int, typer.Option(help="Scopes of the large stack.")] = 100,
    entries: Annotated[int, typer.Option(help="Memories of each scope.")] = 10_000,
    seconds: Annotated[float, typer.Option(help="Seconds per measurement.")] = 10,
    rounds: Annotated[int, typer.Option(help="Measurements of each stack.")] = 3,
) -> None:
    """Compare a turn beside many memories of other scopes with one beside none."""
    print(machine.describe())
    with _running() as small, _running() as large:
        asyncio.run(_compare(small, large, scopes, entries, seconds, rounds))


@contextmanager
def _running() -> Iterator[BenchmarkStack]:
    with TemporaryDirectory(prefix="loci-bench-qdrant-") as folder:
        qdrant = QdrantBinary(Path(folder))
        # A stack starts no index of its own if this variable names one.
        os.environ["LOCI_QDRANT_URL"] = qdrant.start()
        try:
            with local_stack.running(qdrant_timeout=30) as stack:
                yield stack
        finally:
            qdrant.stop()


async def _compare(
    small: BenchmarkStack, large: BenchmarkStack, scopes: int, entries: int, seconds: float, rounds: int
) -> None:
    started = time.perf_counter()
    await _fill(small, 1, entries)
    await _fill(large, scopes, entries)
    print(f"filled in {time.perf_counter() - started:.0f} s; now: {machine.load()}\n")
    rows = []
    asked: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("context, read only", f"/v1/sessions/{_SESSION}/context", {"record_turn": False}),
        ("search", "/v1/memories/search", {"agent_id": "agent-0"}),
    )
    for name, path, body in asked:
        figures: dict[int, list[tuple[float, float]]] = {entries: [], scopes * entries: []}
        for _ in range(rounds):
            for stack, count in ((small, entries), (large, scopes * entries)):
                figures[count].append(await _measure(stack, path, body, seconds))
        rows += [[name, str(count), *_medians(pairs)] for count, pairs in figures.items()]
    table.show(_HEAD, rows)


async def _fill(stack: BenchmarkStack, scopes: int, entries: int) -> None:
    """Save the memories of every scope, and open a session in the first."""
    connections = [Connection(stack.url, stack.key) for _ in range(_LOADERS)]
    waiting = [
        (scope, min(_BATCH, entries - start))
        for scope in range(scopes)
        for start in range(0, entries, _BATCH)
    ]

    async def load(connection: Connection, seed: int) -> None:
        corpus = Corpus(seed)
        while waiting:
            scope, count = waiting.pop(0)
            batch = [memory | {"agent_id": f"agent-{scope}"} for memory in corpus.memories(count)]
            await connection.send("POST", "/v1/memories/batch", {"memories": batch})

    async with asyncio.TaskGroup() as loading:
        for position, connection in enumerate(connections):
            loading.create_task(load(connection, _SEED + position))
    await connections[0].settled()
    await connections[0].send("POST", "/v1/sessions", {"id": _SESSION, "agent_id": "agent-0"})
    for connection in connections:
        await connection.close()


async def _measure(
    stack: BenchmarkStack, path: str, body: dict[str, object], seconds: float
) -> tuple[float, float]:
    """Return p50 and p99 in milliseconds of one client."""
    connection, corpus = Connection(stack.url, stack.key), Corpus(_SEED)
    field = "query" if path.endswith("search") else "message"
    pace = await drive([lambda: connection.send("POST", path, body | {field: corpus.message()})], seconds)
    await connection.close()
    return pace.p50, pace.p99


def _medians(figures: Sequence[tuple[float, float]]) -> list[str]:
    return [f"{median(values):.1f}" for values in zip(*figures, strict=True)]


if __name__ == "__main__":
    typer.run(main)
