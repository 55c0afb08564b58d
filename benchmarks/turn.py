"""The speed and the cost of a turn: `python -m benchmarks.turn [--entries 10000,100000] [--clients 1,8,32]`.

Contexts, searches and saves are sent over HTTP, with a number of memories in one scope, sessions of 20
turns, and 10 entries in working memory. The line `floor` is what the databases alone need for the reads
of a context (baseline.py). `context` saves the message as a turn; `context, read only` does not. The last
columns are the gateway's processor time per request, which hardly depends on other load, in milliseconds
and in units: a unit is the processor time of a request to a bare app, measured in the same run
(reference_app.py). The cost of a batch save is that of one of its memories.

`--planted` writes 100 skills and 100 000 entities with as many triples into the scope before, and each
message names one of both: the costs of that are recorded beside the others.

`--check` fails if a cost in units is above 1.25 times the one that is recorded in `recorded_units.json`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import baseline, local_stack, machine, planted_scope, reference_app, table
from benchmarks.baseline import Baseline
from benchmarks.closed_loop import Pace, drive
from benchmarks.corpus import Corpus
from benchmarks.local_stack import BenchmarkStack
from benchmarks.planted_scope import PlantedCorpus
from benchmarks.raw_http import Connection

_TURNS, _WORKING_ENTRIES = 20, 10
_BATCH = 1000
_CALLS = 40
_SEED = 7
_BATCH_SAVE = 50
_UNIT_CLIENTS = 8
_TOLERANCE = 1.25
_PLANTED = ", planted"
_RECORDED = Path(__file__).parent / "recorded_units.json"
_HEAD = ("what", "entries", "clients", "p50 ms", "p99 ms", "per second", "p50 / floor", "gateway ms", "units")

Act = Callable[[], Awaitable[object]]


def main(
    entries: Annotated[str, typer.Option(help="Comma-separated, rising.")] = "10000,100000",
    clients: Annotated[str, typer.Option(help="Comma-separated.")] = "1,8,32",
    seconds: Annotated[float, typer.Option(help="Seconds per line of the table.")] = 10,
    embedder: Annotated[str | None, typer.Option(help="An OpenAI-compatible address, or `local`.")] = None,
    *,
    planted: Annotated[bool, typer.Option(help="Measure with 100 skills and 100 000 entities.")] = False,
    check: Annotated[
        bool, typer.Option(help="Compare with the recorded costs, and fail above them.")
    ] = False,
    record: Annotated[bool, typer.Option(help="Record the costs.")] = False,
) -> None:
    """Measure contexts, searches and saves, compare with the databases alone, and print a table."""
    sizes, counts = (
        [int(number) for number in entries.split(",")],
        [int(number) for number in clients.split(",")],
    )
    print(machine.describe())
    print(f"before: {machine.load()}")
    unit = asyncio.run(_measure_unit(seconds))
    with local_stack.running(embedder) as running:
        print(asyncio.run(running.durability()))
        costs: Costs = {}
        rows = asyncio.run(_measured(running, sizes, counts, seconds, costs, planted=planted))
    print(f"embedder: {embedder or 'none'}; {seconds:g} s a line; a unit is {1000 * unit:.3f} ms\n")
    table.show(_HEAD, [[*row, f"{float(row[-1]) / 1000 / unit:.1f}" if row[-1] else ""] for row in rows])
    suffix = _PLANTED if planted else ""
    units = {name + suffix: round(cost / unit, 1) for name, cost in costs.items()}
    if record:
        recorded = json.loads(_RECORDED.read_text()) | units
        _RECORDED.write_text(json.dumps(recorded, indent=2) + "\n")
    if check:
        _check(units)


Costs = dict[str, float]
"""Processor seconds per request by name, at the first size and with _UNIT_CLIENTS clients."""


async def _measure_unit(seconds: float) -> float:
    """Return the processor seconds of a request to the reference app."""
    with reference_app.running() as app:
        connections = [Connection(app.url) for _ in range(_UNIT_CLIENTS)]
        before = app.seconds()
        pace = await drive([_constant(connection) for connection in connections], seconds)
        for connection in connections:
            await connection.close()
        return (app.seconds() - before) / pace.requests


def _constant(connection: Connection) -> Act:
    return lambda: connection.exchange("GET", "/constant", b"")


def _check(units: dict[str, float]) -> None:
    recorded: dict[str, float] = json.loads(_RECORDED.read_text())
    worse = {name: cost for name, cost in units.items() if cost > _TOLERANCE * recorded[name]}
    for name, cost in units.items():
        print(
            f"{name}: {cost:.1f} units, recorded {recorded[name]:.1f}{' - TOO DEAR' if name in worse else ''}"
        )
    if worse:
        raise SystemExit(1)


async def _measured(
    running: BenchmarkStack,
    sizes: list[int],
    counts: list[int],
    seconds: float,
    costs: Costs,
    *,
    planted: bool,
) -> list[list[str]]:
    corpus, saved_count = PlantedCorpus(_SEED) if planted else Corpus(_SEED), 0
    sessions = [f"bench-{position}" for position in range(max(counts))]
    rows: list[list[str]] = []
    connections = [Connection(running.url, running.key) for _ in sessions]
    try:
        if isinstance(corpus, PlantedCorpus):
            print(await planted_scope.plant(running, connections[0], corpus))
        for session in sessions:
            await _open(connections[0], session, corpus)
        for size in sizes:
            await _fill(connections[0], corpus, size - saved_count)
            saved_count = size
            floor = await baseline.prepare_calls(
                running.settings, running.key, sessions[0], [corpus.message() for _ in range(_CALLS)]
            )
            for count in counts:
                pairs = list(zip(connections, sessions, strict=True))[:count]
                rows += await _line_up(running, size, pairs, corpus, floor, seconds, costs)
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
    costs: Costs,
) -> list[list[str]]:
    await pairs[0][0].settled()  # else an embedder would still work on the saves of the lines before
    async with floor.clients(len(pairs)) as clients:
        floor_pace = await drive(clients, seconds)
    rows = [_row("floor", size, len(pairs), floor_pace)]
    for name, act in _ACTS.items():
        before = running.gateway_seconds()
        measured = await drive([act(corpus, *pair) for pair in pairs], seconds)
        records = _BATCH_SAVE if name == "batch save" else 1
        spent = (running.gateway_seconds() - before) / measured.requests / records
        if len(pairs) == _UNIT_CLIENTS:
            costs.setdefault(name, spent)
        ratio = f"{measured.p50 / floor_pace.p50:.2f}" if name.startswith("context") else ""
        rows.append([*_row(name, size, len(pairs), measured)[:-2], ratio, f"{1000 * spent:.2f}"])
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


def _save_batch(corpus: Corpus, connection: Connection, _: str) -> Act:
    return lambda: connection.send(
        "POST", "/v1/memories/batch", {"memories": [corpus.memory() for _ in range(_BATCH_SAVE)]}
    )


_ACTS: dict[str, Callable[[Corpus, Connection, str], Act]] = {
    "context, read only": _reading,
    "context": _context,
    "search": _search,
    "save": _save,
    "batch save": _save_batch,
}

if __name__ == "__main__":
    typer.run(main)
