"""Say of every place that stores text what is in it and what deletes it.

Each text, JSON and binary column of a table says with `Column(info=…)` one of three things:

    content()       text of callers, or derived from it; it goes with its row
    names(…)        the column names a user, an agent, a session, a turn or another record; deleting
                    one of these deletes the row, or clears what is said here
    names_collected(…)  the same, for rows with copies outside Postgres, or with jobs
    names_turns(…)  the same, for a number of a turn in the row's session
    no_content(…)   nothing that a caller wrote, or nothing that a deletion has to reach, and why

`shared/lifecycle/register.py` walks these declarations whenever something is deleted. A family of Redis
keys and a kind of points declare in the same words (`declare_store`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

INFO = "content"


class Subject(StrEnum):
    """What a deletion is about."""

    USER = "user"
    AGENT = "agent"
    SESSION = "session"
    TURN = "turn"
    WITHDRAWN_TURN = "withdrawn_turn"  # edited or deleted by a caller: what was derived from it goes, too
    LOG = "log"  # all turns that a session ever had
    MEMORY = "memory"
    PREFERENCE = "preference"
    PLAYBOOK = "playbook"
    DOCUMENT = "document"
    SKILL = "skill"
    ENTITY = "entity"
    TRIPLE = "triple"
    PROPOSAL = "proposal"
    DREAM_RUN = "dream_run"


class Effect(StrEnum):
    """What the deletion of a subject does to the rows that name it."""

    DELETE_ROW = "delete_row"
    CLEAR = "clear"  # set columns of the row to NULL, or to their defaults where they may not be NULL
    UNLINK = "unlink"  # take the subject's id out of an array, and its items out of a JSON list


@dataclass(frozen=True, slots=True)
class Content:
    """Text of callers, which is deleted with its row."""


@dataclass(frozen=True, slots=True)
class NoContent:
    """A column that no deletion has to reach, and the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Names:
    """A column, or an array, that names subjects; `columns` are those that the effect is on.

    `only` are the values of other columns of the rows that are meant. The rows of a `collected` column are
    locked first and then deleted by their own ids: a row that is committed in between stays whole, with its
    keys in Redis, its points and its job, instead of losing the row alone.

    With `first_seq`, a number or the name of a column, this column holds the number of a turn: together with
    `session_id` it names the turns from `first_seq` to this one.
    """

    subjects: frozenset[Subject]
    effect: Effect
    columns: tuple[str, ...] = ()
    only: tuple[tuple[str, str], ...] = ()
    collected: bool = False
    first_seq: str | int | None = None


def content() -> dict[str, Any]:
    """Return the info of a column with text of callers: it is deleted with its row."""
    return {INFO: Content()}


def no_content(reason: str) -> dict[str, Any]:
    """Return the info of a column that no deletion has to reach."""
    return {INFO: NoContent(reason)}


def names(*subjects: Subject, only: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the info of a column that names a subject whose deletion deletes the row."""
    return {INFO: Names(frozenset(subjects), Effect.DELETE_ROW, only=tuple((only or {}).items()))}


def names_collected(*subjects: Subject) -> dict[str, Any]:
    """Return the info of a column that names an owner; a deletion locks these rows and takes them by id."""
    return {INFO: Names(frozenset(subjects), Effect.DELETE_ROW, collected=True)}


def names_and_clears(*subjects: Subject, clears: tuple[str, ...]) -> dict[str, Any]:
    """Return the info of a column that names subjects whose deletion clears columns of the row."""
    return {INFO: Names(frozenset(subjects), Effect.CLEAR, clears)}


def names_items(*subjects: Subject, lists: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the info of an array of ids, from which a deleted one is removed.

    `lists` are JSON lists of the same row whose items with that `id` are removed, too.
    """
    return {INFO: Names(frozenset(subjects), Effect.UNLINK, lists)}


def names_turns(*subjects: Subject, first_seq: str | int, clears: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the info of a column with the number of a turn of the row's session.

    The row names the turns from `first_seq`, a number or the name of a column, to this one. If one of them
    is deleted, the row is deleted, or the columns in `clears` are cleared.
    """
    effect = Effect.CLEAR if clears else Effect.DELETE_ROW
    return {INFO: Names(frozenset(subjects), effect, clears, first_seq=first_seq)}


@dataclass(frozen=True, slots=True)
class StoreDeclaration:
    """A family of Redis keys, or a kind of points: what deletes it, or why nothing has to."""

    store: str
    family: str
    subjects: frozenset[Subject]
    reason: str


_declarations: dict[tuple[str, str], StoreDeclaration] = {}


def declare_store(store: str, family: str, *subjects: Subject, reason: str) -> str:
    """Declare a family of keys or a kind of points, and return its name.

    `reason` says how a deletion reaches it, or why none has to.
    """
    _declarations[(store, family)] = StoreDeclaration(store, family, frozenset(subjects), reason)
    return family


def declared_stores() -> list[StoreDeclaration]:
    """Return what the imported modules have declared, in a fixed order."""
    return [_declarations[key] for key in sorted(_declarations)]
