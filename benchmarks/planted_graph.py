"""A graph of any size, written into the database as saving it would, in seconds."""

import random
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg

from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection
from shared.foundation import config
from shared.memory.graph.names import fold, key_of

_SYLLABLES = ("ba", "cor", "del", "fin", "gar", "hol", "jin", "kel", "lum", "mir", "nov", "pan", "ras", "sol")
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def name_of(number: int) -> str:
    """Return a name of two words that no other number has."""
    first, second = divmod(number, 1000)
    return f"{_word(first)} {_word(second)}ex"


def _word(number: int) -> str:
    word = _SYLLABLES[number % len(_SYLLABLES)].title()
    while number := number // len(_SYLLABLES):
        word += _SYLLABLES[number % len(_SYLLABLES)]
    return word


async def plant(
    running: BenchmarkStack, connection: Connection, names: list[str], rng: random.Random, *, shared: int = 0
) -> str:
    """Write entities, each with an alias, and as many triples; return the tenant of the key.

    The first `shared` of them have one alias more, which all of these share.
    """
    first = await connection.send("POST", "/v1/graph/entities", {"name": "the first one"})
    postgres = await asyncpg.connect(
        config.require_setting(running.settings.postgres_url, "LOCI_POSTGRES_URL")
    )
    tenant = str(await postgres.fetchval("SELECT tenant FROM graph_entity WHERE id = $1", first["id"]))
    ids = [str(uuid4()) for _ in names]
    aliases = [[_alias(name), *(["The Shared Alias"] if n < shared else [])] for n, name in enumerate(names)]
    entities = list(zip(ids, names, aliases, strict=True))
    await _copy(postgres, "graph_entity", [_entity(tenant, *entity) for entity in entities])
    await _copy(postgres, "graph_name", [row for entity in entities for row in _names(tenant, *entity)])
    await _copy(postgres, "graph_triple", [_triple(tenant, id_, rng.choice(ids), rng) for id_ in ids])
    await postgres.execute("ANALYZE graph_entity, graph_name, graph_triple")
    await postgres.close()
    return tenant


async def _copy(postgres: asyncpg.Connection, table_name: str, rows: list[dict[str, Any]]) -> None:
    columns = list(rows[0])
    records = [tuple(row[column] for column in columns) for row in rows]
    await postgres.copy_records_to_table(table_name, records=records, columns=columns)


def _alias(name: str) -> str:
    return f"the {name} of old"


def _entity(tenant: str, entity_id: str, name: str, aliases: list[str]) -> dict[str, Any]:
    owner = {"tenant": tenant, "id": entity_id, "agent_id": "default", "name": name}
    content = {"folded_name": fold(name), "type": "Topic", "aliases": aliases, "metadata": "{}"}
    return owner | content | {"created_at": _MOMENT}


def _names(tenant: str, entity_id: str, name: str, aliases: list[str]) -> list[dict[str, Any]]:
    owner = {"tenant": tenant, "entity_id": entity_id, "agent_id": "default"}
    return [owner | {"folded": folded, "key": key_of(folded)} for folded in map(fold, (name, *aliases))]


def _triple(tenant: str, subject_id: str, object_id: str, rng: random.Random) -> dict[str, Any]:
    ids = {"tenant": tenant, "id": str(uuid4()), "agent_id": "default", "subject_id": subject_id}
    says = {"predicate": "knows", "object_id": object_id, "object_key": object_id}
    return ids | says | {"confidence": rng.random(), "created_at": _MOMENT}
