"""The statements that every kind of record has, on a kind that the product does not have: contacts.

Its table is a temporary one without row-level security, so that the statements alone keep tenants apart.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.schema import CreateTable

from shared.foundation.origin import UNKNOWN
from shared.foundation.stages import RecordKind
from shared.infra.origin_columns import origin_columns
from shared.infra.transaction import Transaction
from shared.records.record_type import RecordType
from shared.search.index.points import IndexDocument
from shared.search.text.tokenizer import tokenize_query
from tests.conftest import Gateway

contact = Table(
    "contact",
    MetaData(),
    Column("tenant", Text),
    Column("id", Text, primary_key=True),
    Column("name", Text),
    Column("note", Text),
    Column("is_listed", Boolean, server_default=text("true")),
    Column("version", BigInteger),
    Column("created_at", DateTime(timezone=True), server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True)),
    Column("search_terms", TSVECTOR),
    *origin_columns(),
    UniqueConstraint("tenant", "name"),
    prefixes=["TEMPORARY"],
    postgresql_on_commit="DROP",
)


class Contact(BaseModel):
    tenant: str
    id: str
    name: str
    note: str
    version: int
    created_at: datetime


def document(record: Contact) -> IndexDocument:
    return IndexDocument(
        record.tenant, RecordKind.MEMORY, record.id, record.version, record.note, record.note
    )


CONTACT = RecordType(
    kind=RecordKind.MEMORY,  # nothing here asks the index
    table=contact,
    from_row=lambda row: Contact.model_validate({**row}),
    document=document,
    subjects=(),
    search_text=lambda columns: f"{columns['name']} {columns['note']}",
    searchable=contact.c.is_listed,
)


@asynccontextmanager
async def contacts(
    gateway: Gateway, *rows: Mapping[str, Any]
) -> AsyncIterator[tuple[Transaction, list[Contact]]]:
    """A transaction in which there are contacts with these columns."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(CreateTable(contact))
        yield tx, [await CONTACT.insert(tx, row, UNKNOWN) for row in rows]


ANNA, BELA = (
    {"name": "Anna", "note": "plays the oboe"},
    {"name": "Bela", "note": "repairs the oboe, and oboes"},
)


async def test_a_record_is_inserted_found_and_read(gateway: Gateway) -> None:
    async with contacts(gateway, ANNA, BELA) as (tx, [anna, bela]):
        assert await CONTACT.find(tx, contact.c.name == "Anna") == anna
        assert await CONTACT.find(tx, contact.c.name == "Cleo") is None
        assert await CONTACT.read(tx, order=(contact.c.name.desc(),)) == [bela, anna]
        assert await CONTACT.read_by_ids(tx, [bela.id, "x"]) == {bela.id: bela}
        assert await CONTACT.count(tx) == 2
        assert await CONTACT.count(tx, contact.c.name == "Anna") == 1


async def test_a_taken_key_inserts_nothing(gateway: Gateway) -> None:
    async with contacts(gateway, ANNA) as (tx, [anna]):
        assert await CONTACT.insert_unless_taken(tx, ANNA | {"note": "another"}, UNKNOWN) is None
        assert await CONTACT.read(tx) == [anna]
        assert await CONTACT.insert_unless_taken(tx, BELA, UNKNOWN) is not None


async def test_pages_follow_each_other_in_both_orders(gateway: Gateway) -> None:
    same_moment = datetime(2026, 5, 1, tzinfo=UTC)
    rows = [{"name": name, "note": "", "created_at": same_moment} for name in "abc"]
    async with contacts(gateway, *rows, ANNA) as (tx, [*same, anna]):
        oldest_first = [*sorted(same, key=lambda record: record.id), anna]
        newest_first = [anna, *oldest_first[:-1]]
        for expected, is_reversed in ((oldest_first, False), (newest_first, True)):
            first = await CONTACT.read_page(tx, 2, None, newest_first=is_reversed)
            after = (first[-1].created_at, first[-1].id)
            assert [*first, *await CONTACT.read_page(tx, 9, after, newest_first=is_reversed)] == expected
        assert await CONTACT.read_page(tx, 9, None, contact.c.name == "Anna") == [anna]


async def test_terms_match_what_was_written_last(gateway: Gateway) -> None:
    async with contacts(gateway, ANNA, BELA) as (tx, [anna, bela]):
        assert await CONTACT.read_matching(tx, tokenize_query("repairs oboe"), 9) == [bela, anna]
        assert await CONTACT.read_matching(tx, tokenize_query("oboe"), 9, contact.c.name == "Anna") == [anna]
        assert await CONTACT.read_matching(tx, [], 9) == []
        moved = await CONTACT.replace(tx, anna.id, {"name": "Anna", "note": "sings"}, UNKNOWN)
        assert await CONTACT.read_matching(tx, tokenize_query("oboe"), 9) == [bela]
        assert await CONTACT.read_matching(tx, tokenize_query("sings"), 9) == [moved]


async def test_a_replacement_has_a_higher_version_than_any_before(gateway: Gateway) -> None:
    async with contacts(gateway, ANNA) as (tx, [anna]):
        ahead = 2 * anna.version
        await CONTACT.update(tx, anna.id, {"version": ahead})
        replaced = await CONTACT.replace(tx, anna.id, ANNA | {"note": "sings"}, UNKNOWN)
        assert (replaced.version, replaced.note) == (ahead + 1, "sings")


async def test_an_update_changes_what_meets_its_conditions(gateway: Gateway) -> None:
    async with contacts(gateway, ANNA) as (tx, [anna]):
        assert await CONTACT.update(tx, anna.id, {"note": "sings"}, contact.c.name == "Bela") is None
        updated = await CONTACT.update(tx, anna.id, {"note": "sings"}, contact.c.name == "Anna")
        assert updated == anna.model_copy(update={"note": "sings"})


async def test_only_searchable_records_have_documents_and_versions(gateway: Gateway) -> None:
    async with contacts(gateway, ANNA, BELA | {"is_listed": False}) as (tx, [anna, bela]):
        ids = [anna.id, bela.id]
        assert await CONTACT.read_documents(tx, ids) == [document(anna)]
        assert await CONTACT.read_versions(tx, ids) == {anna.id: anna.version}
        assert await CONTACT.read_version_page(tx, "", 9) == {anna.id: anna.version}
        assert await CONTACT.read_version_page(tx, anna.id, 9) == {}
        assert await CONTACT.count_searchable(tx) == 1


async def test_no_statement_reaches_the_rows_of_another_tenant(gateway: Gateway) -> None:
    async with contacts(gateway, ANNA) as (tx, [anna]):
        stranger = Transaction(tx.connection, "another")
        assert await CONTACT.read(stranger) == []
        assert await CONTACT.read_page(stranger, 9, None) == []
        assert await CONTACT.read_by_ids(stranger, [anna.id]) == {}
        assert await CONTACT.read_matching(stranger, tokenize_query("oboe"), 9) == []
        assert await CONTACT.read_documents(stranger, [anna.id]) == []
        assert await CONTACT.read_versions(stranger, [anna.id]) == {}
        assert await CONTACT.read_version_page(stranger, "", 9) == {}
        assert await CONTACT.count(stranger) == 0
        assert await CONTACT.update(stranger, anna.id, {"note": "taken"}) is None
        assert (await CONTACT.insert(stranger, ANNA, UNKNOWN)).tenant == "another"
        assert await CONTACT.read(tx) == [anna]
