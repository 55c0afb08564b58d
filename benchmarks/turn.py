"""The speed of a turn: `python -m benchmarks.turn [--entries 10000,100000] [--clients 1,8,32]`.

Contexts, searches and saves over HTTP, with so many entries in one scope, sessions of 20 turns and a
desk of 10 entries; beside the contexts the floor, what the stores need for the same reads (floor.py).
`context` records the message as a turn; `context, read only` does not, so it does what the floor does,
and its ratio to the floor is what the gateway costs. The last column is the gateway's processor time for
one request: unlike the times it hardly depends on what else the machine does.
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

_TURNS, _DESK = 20, 10
_BATCH = 1000
_NOTED = 40
_SEED = 7
_HEAD = ("what", "entries", "clients", "p50 ms", "p99 ms", "per second", "p50 / floor", "gateway ms each")

Act = Callable[[], Awaitable[object]]


def main(
    entries: Annotated[str, typer.Option(help="Comma-separated, rising.")] = "10000,100000",
    clients: Annotated[str, typer.Option(help="Comma-separated.")] = "1,8,32",
    seconds: Annotated[float, typer.Option(help="For each line of the table.")] = 10,
    embedder: Annotated[str | None, typer.Option(help="An OpenAI-compatible address, or `local`.")] = None,
) -> None:
    """Measure contexts, searches and saves beside the floor and print a table."""
    sizes, counts = [int(one) for one in entries.split(",")], [int(one) for one in clients.split(",")]
    print(machine.described())
    with local_stack.running(embedder) as running:
        print(asyncio.run(running.durability()))
        rows = asyncio.run(_measured(running, sizes, counts, seconds))
    print(f"embedder: {embedder or 'none'}; {seconds:g} s a line\n")
    table.show(_HEAD, rows)


async def _measured(
    running: BenchmarkStack, sizes: list[int], counts: list[int], seconds: float
) -> list[list[str]]:
    corpus, held = Corpus(_SEED), 0
    sessions = [f"bench-{place}" for place in range(max(counts))]
    rows: list[list[str]] = []
    connections = [Connection(running.url, running.key) for _ in sessions]
    try:
        for session in sessions:
            await _open(connections[0], session, corpus)
        for size in sizes:
            await _fill(connections[0], corpus, size - held)
            held = size
            bare = await baseline.note(
                running.settings, running.key, sessions[0], [corpus.message() for _ in range(_NOTED)]
            )
            for count in counts:
                pairs = list(zip(connections, sessions, strict=True))[:count]
                rows += await _line_up(running, size, pairs, corpus, bare, seconds)
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
    for place in range(_DESK):
        paper = {
            "value": corpus.memory()["content"],
            "ttl_seconds": 86_400,
            "category": "draft",
            "tags": ["bench"],
        }
        await connection.send("PUT", f"/v1/working/session/{session}/paper-{place}", paper)


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
    bare: Baseline,
    seconds: float,
) -> list[list[str]]:
    async with bare.clients(len(pairs)) as clients:
        least = await drive(clients, seconds)
    rows = [_row("floor", size, len(pairs), least)]
    for name, act in _ACTS.items():
        before = running.gateway_seconds()
        pace = await drive([act(corpus, *pair) for pair in pairs], seconds)
        spent = 1000 * (running.gateway_seconds() - before) / pace.requests
        ratio = f"{pace.p50 / least.p50:.2f}" if name.startswith("context") else ""
        rows.append([*_row(name, size, len(pairs), pace)[:-2], ratio, f"{spent:.1f}"])
    return rows


def _row(name: str, size: int, clients: int, pace: Pace) -> list[str]:
    return [name, str(size), str(clients), f"{pace.p50:.1f}", f"{pace.p99:.1f}", f"{pace.rate:.0f}", "", ""]


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
