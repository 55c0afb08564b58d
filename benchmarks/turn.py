"""The speed of a turn: `python -m benchmarks.turn [--entries 10000,100000] [--clients 1,8,32]`.

Contexts, searches and saves are sent over HTTP, with a number of memories in one scope, sessions of 20
turns, and 10 entries in working memory. The line `floor` is what the databases alone need for the same
reads (baseline.py). `context` saves the message as a turn. `context, read only` does not, so it reads
the same as the floor, and its ratio to the floor is the cost of the gateway. The last column is the
gateway's processor time per request, which hardly depends on other load.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from benchmarks import baseline, local_stack, machine, table
from benchmarks.baseline import Baseline
from benchmarks.closed_loop import Pace, drive
from benchmarks.corpus import Corpus
from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection

_TURNS, _WORKING_ENTRIES = 20, 10
_BATCH = 1000
_RECORDED_CALLS = 40
_SEED = 7
_HEAD = ("what", "entries", "clients", "p50 ms", "p99 ms", "per second", "p50 / floor", "gateway ms each")

Act = Callable[[], Awaitable[object]]


def main(
    entries: Annotated[str, typer.Option(help="Comma-separated, rising.")] = "10000,100000",
    clients: Annotated[str, typer.Option(help="Comma-separated.")] = "1,8,32",
    seconds: Annotated[float, typer.Option(help="Seconds per line of the table.")] = 10,
    embedder: Annotated[str | None, typer.Option(help="An OpenAI-compatible address, or `local`.")] = None,
) -> None:
    """Measure contexts, searches and saves, compare with the databases alone, and print a table."""
    sizes, counts = (
        [int(number) for number in entries.split(",")],
        [int(number) for number in clients.split(",")],
    )
    print(machine.describe())
    with local_stack.running(embedder) as running:
        print(asyncio.run(running.durability()))
        rows = asyncio.run(_measured(running, sizes, counts, seconds))
    print(f"embedder: {embedder or 'none'}; {seconds:g} s a line\n")
    table.show(_HEAD, rows)


async def _measured(
    running: BenchmarkStack, sizes: list[int], counts: list[int], seconds: float
) -> list[list[str]]:
    corpus, saved_count = Corpus(_SEED), 0
    sessions = [f"bench-{position}" for position in range(max(counts))]
    rows: list[list[str]] = []
    connections = [Connection(running.url, running.key) for _ in sessions]
    try:
        for session in sessions:
            await _open(connections[0], session, corpus)
        for size in sizes:
            await _fill(connections[0], corpus, size - saved_count)
            saved_count = size
            floor = await baseline.record_calls(
                running.settings, running.key, sessions[0], [corpus.message() for _ in range(_RECORDED_CALLS)]
            )
            for count in counts:
                pairs = list(zip(connections, sessions, strict=True))[:count]
                rows += await _line_up(running, size, pairs, corpus, floor, seconds)
    finally:
        for connection in connections:
            await connection.close()
    return rows


async def _open(connection: Connection, session: str, corpus: Corpus) -> None:
    await connection.send("POST", "/v1/sessions", {"id": session})
    turns = [
        {"role": role, "content": corpus.memory()["content"]}
        for _ in range(_TURNS // 2)
        for role in ("user", "assistant")
    ]
    await connection.send("POST", f"/v1/sessions/{session}/turns/batch", {"turns": turns})
    for position in range(_WORKING_ENTRIES):
        paper = {
            "value": corpus.memory()["content"],
            "ttl_seconds": 86_400,
            "category": "draft",
            "tags": ["bench"],
        }
        await connection.send("PUT", f"/v1/working/session/{session}/paper-{position}", paper)


async def _fill(connection: Connection, corpus: Corpus, count: int) -> None:
    for start in range(0, count, _BATCH):
        batch = corpus.memories(min(_BATCH, count - start))
        await connection.send("POST", "/v1/memories/batch", {"memories": batch})
    await connection.settled()


async def _line_up(
    running: BenchmarkStack,
    size: int,
    pairs: list[tuple[Connection, str]],
    corpus: Corpus,
    floor: Baseline,
    seconds: float,
) -> list[list[str]]:
    async with floor.clients(len(pairs)) as clients:
        floor_pace = await drive(clients, seconds)
    rows = [_row("floor", size, len(pairs), floor_pace)]
    for name, act in _ACTS.items():
        before = running.gateway_seconds()
        measured = await drive([act(corpus, *pair) for pair in pairs], seconds)
        spent = 1000 * (running.gateway_seconds() - before) / measured.requests
        ratio = f"{measured.p50 / floor_pace.p50:.2f}" if name.startswith("context") else ""
        rows.append([*_row(name, size, len(pairs), measured)[:-2], ratio, f"{spent:.1f}"])
    return rows


def _row(name: str, size: int, clients: int, measured: Pace) -> list[str]:
    return [
        name,
        str(size),
        str(clients),
        f"{measured.p50:.1f}",
        f"{measured.p99:.1f}",
        f"{measured.rate:.0f}",
        "",
        "",
    ]


def _context(corpus: Corpus, connection: Connection, session: str, *, record: bool = True) -> Act:
    path = f"/v1/sessions/{session}/context"
    return lambda: connection.send("POST", path, {"message": corpus.message(), "record_turn": record})


def _reading(corpus: Corpus, connection: Connection, session: str) -> Act:
    return _context(corpus, connection, session, record=False)


def _search(corpus: Corpus, connection: Connection, _: str) -> Act:
    return lambda: connection.send("POST", "/v1/memories/search", {"query": corpus.message()})


def _save(corpus: Corpus, connection: Connection, _: str) -> Act:
    return lambda: connection.send("POST", "/v1/memories", corpus.memory())


_ACTS: dict[str, Callable[[Corpus, Connection, str], Act]] = {
    "context, read only": _reading,
    "context": _context,
    "search": _search,
    "save": _save,
}

if __name__ == "__main__":
    typer.run(main)
