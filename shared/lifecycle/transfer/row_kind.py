"""What a line of an export is, and what of a table's rows it carries."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, Table
from sqlalchemy.dialects.postgresql import TSVECTOR

from shared.foundation.stages import RecordKind
from shared.lifecycle.transfer.row_checks import Fields


class LineKind(StrEnum):
    """What a line is, in the order in which an export writes them."""

    AGENT = "agent"
    AGENT_TEXT = "agent_text"
    AGENT_FILE = "agent_file"
    PINNED_TEXT = "pinned_text"
    PLAYBOOK = "playbook"
    SKILL_FILE = "skill_file"
    SKILL = "skill"  # after its files, which it names
    SESSION = "session"
    TURN = "turn"
    SESSION_SUMMARY = "session_summary"
    OBSERVATION = "observation"
    SCRATCHPAD_SNIPPET = "scratchpad_snippet"
    FEEDBACK_SIGNAL = "feedback_signal"
    STATE_KEY = "state_key"
    STATE_COLLECTION = "state_collection"
    TRANSCRIPT_ENTRY = "transcript_entry"
    # After the sessions, which their sources name.
    MEMORY = "memory"
    # After the memories that they were learnt with.
    PREFERENCE = "preference"
    # After the memories, which their sources name; a triple after its entities.
    GRAPH_ENTITY = "graph_entity"
    GRAPH_TRIPLE = "graph_triple"


GRAPH_KINDS = (LineKind.GRAPH_ENTITY, LineKind.GRAPH_TRIPLE)
"""The kinds of lines that name each other, and not the ids of rows."""


class Owner(StrEnum):
    """What a row belongs to, within its scope."""

    SCOPE = "scope"
    AGENT = "agent"
    SESSION = "session"
    STATE_STORE = "state store"  # of a session or of an agent


_OWNER_COLUMNS = frozenset({"tenant", "agent_id", "user_id"})
_OF_IMPORT = frozenset({"origin_channel", "origin_key"})
"""What an import gives anew. A line carries how far its text was trusted, which is then the most."""
_NEVER_COMPARED = frozenset({"created_at", "updated_at", "version", "origin_trust"})


@dataclass(frozen=True, slots=True, eq=False)
class RowKind:
    """How the rows of one table are exported and imported.

    `key` are the columns that tell which row of its owner is meant; an export is in the order of `order`. A
    row that exists and differs is overwritten, or kept as it is if `is_kept`. `json_texts` are columns with
    JSON as text, which a line carries as JSON. `record_kind` and `search_text` are those of rows that search
    can find.
    """

    name: LineKind
    table: Table
    owner: Owner
    key: tuple[str, ...]
    check: Callable[[Fields], Fields]
    left_out: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    is_kept: bool = False
    json_texts: frozenset[str] = frozenset()
    overwrites: frozenset[str] | None = None
    record_kind: RecordKind | None = None
    search_text: Callable[[Fields], str] | None = None

    @property
    def is_keyed_by_id(self) -> bool:
        """Whether rows have an id that is unique in the whole tenant, and so may be in use elsewhere.

        Agents and sessions have one, too, but other rows name it, so it is mapped in another way.
        """
        return self.key == ("id",) and self.name not in {LineKind.AGENT, LineKind.SESSION}

    @property
    def draws_ids(self) -> bool:
        """Whether an imported row gets an id and a version of this database."""
        return {"id", "version"} <= self.left_out.keys()

    def field_name(self, column: str) -> str:
        """Return the name of a column in a line."""
        return f"{self.table.name}_kind" if column == "kind" else column


@lru_cache
def carried_columns(kind: RowKind) -> dict[str, Column[Any]]:
    """Return the columns that a line carries, by their names."""
    return {
        # A name of SQLAlchemy's may be a subclass of str, which can't be written as JSON.
        str(column.name): column
        for column in kind.table.columns
        if column.name not in _OWNER_COLUMNS | _OF_IMPORT | kind.left_out.keys() and not _is_computed(column)
    }


@lru_cache
def compared_columns(kind: RowKind) -> frozenset[str]:
    """Return the columns in which a row differs from a line, so that an import overwrites it."""
    names = carried_columns(kind).keys() - {*kind.key} - _NEVER_COMPARED
    return frozenset(names if kind.overwrites is None else kind.overwrites)


def _is_computed(column: Column[Any]) -> bool:
    return column.computed is not None or isinstance(column.type, TSVECTOR)
