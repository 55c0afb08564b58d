"""The speed of finding a message's entities: `python -m benchmarks.graph [--entities 100000]`.

One agent has this many entities, each with an alias, and as many triples between them. Messages of forty
words name one of them, and are asked over HTTP: which entities they name, and what is connected with those.
The line `shared` is of messages with an alias that 10 000 of them have.
"""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from benchmarks import local_stack, machine, planted_graph, table
from benchmarks.closed_loop import Pace, drive
from benchmarks.corpus import Corpus
from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection

_SEED = 7
_SHARED = 10_000
_HEAD = ("what", "entities", "clients", "found", "p50 ms", "p99 ms", "per second")
_PATHS = {"match": "/v1/graph/match", "shared": "/v1/graph/match", "traverse": "/v1/graph/traverse"}


def main(
    entities: Annotated[int, typer.Option(help="Entities of the agent.")] = 100_000,
    clients: Annotated[str, typer.Option(help="Comma-separated.")] = "1,8",
    seconds: Annotated[float, typer.Option(help="Seconds per line of the table.")] = 10,
) -> None:
    """Measure how long it takes to find a message's entities, and print a table."""
    counts = [int(number) for number in clients.split(",")]
    print(machine.describe())
    print(f"before: {machine.load()}")
    with local_stack.running(None) as running:
        rows = asyncio.run(_measured(running, entities, counts, seconds))
    print(f"{seconds:g} s a line\n")
    table.show(_HEAD, rows)


async def _measured(
    running: BenchmarkStack, count: int, client_counts: list[int], seconds: float
) -> list[list[str]]:
    rng, corpus, rows = random.Random(_SEED), Corpus(_SEED), []
    connections = [Connection(running.url, running.key) for _ in range(max(client_counts))]
    names = [planted_graph.name_of(number) for number in range(count)]
    tenant = await planted_graph.plant(running, connections[0], names, rng, shared=_SHARED)
    print(f"tenant {tenant}: {count} entities, {count} triples")
    for clients, what in itertools.product(client_counts, _PATHS):
        found: list[int] = []
        acts = [_act(connection, what, names, corpus, rng, found) for connection in connections[:clients]]
        rows.append(_row(what, count, clients, found, await drive(acts, seconds)))
    for connection in connections:
        await connection.close()
    return rows


def _act(
    connection: Connection,
    what: str,
    names: list[str],
    corpus: Corpus,
    rng: random.Random,
    found: list[int],
) -> Callable[[], Awaitable[object]]:
    async def act() -> None:
        name = rng.choice(names)
        message = f"{corpus.message()} {corpus.message()} {corpus.message()} {corpus.message()} {name}?"
        if what == "shared":
            message = f"{corpus.message()} the shared alias {corpus.message()}"
        body = {"entity": name} if what == "traverse" else {"text": message}
        answer = await connection.send("POST", _PATHS[what], body)
        if what == "match" and not any(entity["name"] == name for entity in answer["results"]):
            raise SystemExit(f"{name} was not matched")
        found.append(len(answer["results"]))

    return act


def _row(what: str, count: int, clients: int, found: list[int], pace: Pace) -> list[str]:
    mean = sum(found) / max(1, len(found))
    times = (f"{pace.p50:.1f}", f"{pace.p99:.1f}", f"{pace.rate:.0f}")
    return [what, str(count), str(clients), f"{mean:.1f}", *times]


if __name__ == "__main__":
    typer.run(main)
