"""Every table with content is exported or named here with the reason; every column is carried or left out."""

from sqlalchemy import LargeBinary, Table
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import Text

from migrations.schema import metadata
from shared.foundation.content import INFO, NoContent
from shared.lifecycle.transfer.graph_lines import EntityLine, TripleLine
from shared.lifecycle.transfer.line_kinds import ROW_KINDS
from shared.lifecycle.transfer.ndjson import MemoryLine
from shared.lifecycle.transfer.row_kind import carried_columns
from shared.memory.graph.table import graph_entity, graph_triple
from shared.memory.longterm.memory import Memory
from tests.integration.transfer import scope_lines

_RUNS = "a dream run is about the memories as they were; what it learned is in them"
_SPEND = "the money was spent in the other installation"
_TENANT = "of the tenant, whose documents are uploaded from their sources"
_LATER = "to be read again by the dreams of this installation"
NOT_EXPORTED = {
    "dream_run": _RUNS,
    "dream_pass": _RUNS,
    "dream_change": _RUNS,
    "dream_undone_change": _RUNS,
    "dream_graph_change": _RUNS,
    "dream_extracted_memory": _LATER,
    "dream_refused_memory": _RUNS,
    "dream_reviewed_memory": _LATER,
    "dream_read_turn": _LATER,
    "dream_evaluated_session": _LATER,
    "preference_occurrence": _LATER,
    "promotion": "how this installation has judged snippets; what was promoted is exported",
    "document": _TENANT,
    "skill_version": "earlier versions; the current one is exported as the skill",
    "skill_proposal": _RUNS,
    "proposal": "of this installation's judge and callers; what was approved is a memory",
    "proposal_evidence": "of proposals, which are not exported",
    "skill_use": "in which sessions of this installation a skill was used",
    "document_chunk": _TENANT,
    "parsed_chunk": _TENANT,
    "business_context_part": "of the tenant, whose text a scope's export does not contain",
    "memory_history": "of this installation, as an export of memories says",
    "memory_tombstone": "digests with the secret of this installation",
    "graph_name": "made with its entity",
    "graph_source": "carried by the lines of triples",
    "graph_tombstone": "digests with the secret of this installation",
    "state_store": "made with its first key, collection or entry",
    "working_namespace": "made with its session",
    "deleted_source_session": "of sessions that this installation has deleted",
    "recalled_memory": "what the prompts of this installation have shown",
    "idempotent_response": "of requests to this installation, for a day",
    "api_key": "a secret of this installation",
    "charge": _SPEND,
    "erasure": "a receipt of this installation",
}
MEMORY_FIELDS_LEFT_OUT = {
    "tenant": "the scope that the import names",
    "agent_id": "the scope that the import names",
    "user_id": "the scope that the import names",
    "version": "of the point in this index",
    "content_version": "of the lines that this installation has shown",
    "source": "the first of the sources",
}


def _has_content(table: Table) -> bool:
    return any(
        isinstance(column.type, (Text, JSONB, ARRAY, LargeBinary))
        and not isinstance(column.info.get(INFO), NoContent)
        for column in table.columns
    )


def test_every_table_with_content_is_exported_or_is_named_with_the_reason() -> None:
    exported = {kind.table.name for kind in ROW_KINDS.values()} | {"memory", "graph_entity", "graph_triple"}
    with_content = {name for name, table in metadata.tables.items() if _has_content(table)}
    assert with_content <= exported | NOT_EXPORTED.keys()
    assert not exported & NOT_EXPORTED.keys()
    assert NOT_EXPORTED.keys() <= metadata.tables.keys()


def test_a_line_of_each_kind_has_every_column_that_is_not_left_out_with_a_reason() -> None:
    """Give a new column a value in `scope_lines.py`: the round trip then shows that it is not lost."""
    for kind in ROW_KINDS.values():
        [line, *_] = [line for line in scope_lines.ALL if line["kind"] == kind.name]
        assert {kind.field_name(name) for name in carried_columns(kind)} | {"kind"} == line.keys()
        assert kind.left_out.keys() <= set(kind.table.columns.keys())
        assert all(kind.left_out.values())


def test_a_line_of_the_graph_has_every_field() -> None:
    for model, line in ((EntityLine, scope_lines.GRAPH_ENTITY), (TripleLine, scope_lines.GRAPH_TRIPLE)):
        assert model.model_fields.keys() == line.keys()
        assert model.line_kind == line["kind"]
    of_table = {*graph_entity.c.keys()} - {"tenant", "agent_id", "user_id", "folded_name", "reviewed_at"}
    assert of_table <= EntityLine.model_fields.keys()
    # Names stand in place of the ids of entities.
    of_table = {*graph_triple.c.keys()} - {"tenant", "agent_id", "user_id", "object_key"}
    of_table -= {"origin_channel", "origin_key"}  # of the import
    assert of_table - {"subject_id", "object_id"} <= TripleLine.model_fields.keys()


def test_a_line_of_a_memory_has_every_field_that_is_not_left_out_with_a_reason() -> None:
    fields = Memory.model_fields.keys() - MEMORY_FIELDS_LEFT_OUT.keys()
    assert fields == MemoryLine.model_fields.keys()
    assert fields | {"kind"} == scope_lines.MEMORY.keys()
