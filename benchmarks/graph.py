"""The speed of finding a message's entities: `python -m benchmarks.graph [--entities 100000]`.

One agent has this many entities, each with an alias, and as many triples between them. Messages of forty
words name one of them, and are asked over HTTP: which entities they name, and what is connected with those.
"""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import uuid4

import asyncpg
import typer

from benchmarks import local_stack, machine, table
from benchmarks.closed_loop import Pace, drive
from benchmarks.corpus import Corpus
from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection
from shared.foundation import config
from shared.memory.graph.names import fold, key_of

_SEED = 7
_SYLLABLES = ("ba", "cor", "del", "fin", "gar", "hol", "jin", "kel", "lum", "mir", "nov", "pan", "ras", "sol")
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
_HEAD = ("what", "entities", "clients", "found", "p50 ms", "p99 ms", "per second")
_PATHS = {"match": "/v1/graph/match", "traverse": "/v1/graph/traverse"}


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
    names = [_name(number) for number in range(count)]
    tenant = await _fill(running, connections[0], names, rng)
    print(f"tenant {tenant}: {count} entities, {count} triples")
    for clients, what in itertools.product(client_counts, _PATHS):
        found: list[int] = []
        acts = [_act(connection, what, names, corpus, rng, found) for connection in connections[:clients]]
        rows.append(_row(what, count, clients, found, await drive(acts, seconds)))
    for connection in connections:
        await connection.close()
    return rows


def _name(number: int) -> str:
    """Return a name of two words that no other number has."""
    first, second = divmod(number, 1000)
    return f"{_word(first)} {_word(second)}ex"


def _word(number: int) -> str:
    word = _SYLLABLES[number % len(_SYLLABLES)].title()
    while number := number // len(_SYLLABLES):
        word += _SYLLABLES[number % len(_SYLLABLES)]
    return word


async def _fill(running: BenchmarkStack, connection: Connection, names: list[str], rng: random.Random) -> str:
    """Write entities and triples into the database, as saving them would; return the tenant of the key."""
    first = await connection.send("POST", "/v1/graph/entities", {"name": "the first one"})
    postgres = await asyncpg.connect(
        config.require_setting(running.settings.postgres_url, "LOCI_POSTGRES_URL")
    )
    tenant = str(await postgres.fetchval("SELECT tenant FROM graph_entity WHERE id = $1", first["id"]))
    ids = [str(uuid4()) for _ in names]
    rows = [_entity(tenant, id_, name) for id_, name in zip(ids, names, strict=True)]
    await _copy(postgres, "graph_entity", rows)
    await _copy(
        postgres,
        "graph_name",
        [row for pair in zip(ids, names, strict=True) for row in _names(tenant, *pair)],
    )
    await _copy(postgres, "graph_triple", [_triple(tenant, id_, rng.choice(ids), rng) for id_ in ids])
    await postgres.execute("ANALYZE graph_entity, graph_name, graph_triple")
    await postgres.close()
    return tenant


async def _copy(postgres: asyncpg.Connection, table_name: str, rows: list[dict[str, Any]]) -> None:
    columns = list(rows[0])
    records = [tuple(row[column] for column in columns) for row in rows]
    await postgres.copy_records_to_table(table_name, records=records, columns=columns)


def _entity(tenant: str, entity_id: str, name: str) -> dict[str, Any]:
    owner = {"tenant": tenant, "id": entity_id, "agent_id": "default", "name": name}
    content = {"folded_name": fold(name), "type": "Topic", "aliases": [_alias(name)], "metadata": "{}"}
    return owner | content | {"created_at": _MOMENT}


def _alias(name: str) -> str:
    return f"the {name} of old"


def _names(tenant: str, entity_id: str, name: str) -> list[dict[str, Any]]:
    owner = {"tenant": tenant, "entity_id": entity_id, "agent_id": "default"}
    return [owner | {"folded": folded, "key": key_of(folded)} for folded in (fold(name), fold(_alias(name)))]


def _triple(tenant: str, subject_id: str, object_id: str, rng: random.Random) -> dict[str, Any]:
    ids = {"tenant": tenant, "id": str(uuid4()), "agent_id": "default", "subject_id": subject_id}
    says = {"predicate": "knows", "object_id": object_id, "object_key": object_id}
    return ids | says | {"confidence": rng.random(), "created_at": _MOMENT}


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
        body = {"text": message} if what == "match" else {"entity": name}
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
