"""The calls of tools: for each tool, one that names a record of an owner, or an owner by its headers.

A tool without a case fails `test_tool_rights.py`. `RECORDS` name one record. `SESSIONS` work in the session
that a header names. `SKILLS` name a skill of the agent and the user of the headers, `SCOPES` write for these,
and `LISTS` show what they may read.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from tests.isolation.rights_table import Owner
from tests.isolation.rights_world import World, new_name

Arguments = dict[str, Any]
Make = Callable[[World, Owner], Awaitable[Arguments]]


class RecordCase(NamedTuple):
    """A call on one record: the row of the table, whether it writes, and how to make record and arguments.

    `absent_is_error` is False for a deletion, which says in words that there was nothing to delete.
    """

    area: str
    writes: bool
    make: Make
    absent_is_error: bool = True


class SessionCase(NamedTuple):
    """A call in a session: whether it writes, and its arguments."""

    writes: bool
    arguments: Callable[[], Arguments]


class ListCase(NamedTuple):
    """A search or a list: its arguments, and the row of the table that says whose records it shows."""

    arguments: Arguments
    area: str = "memory"


class NamedCase(NamedTuple):
    """A call on a skill that the owner of the headers has: whether it writes, and its other arguments."""

    writes: bool
    arguments: Arguments


def _memory(*, writes: bool, absent_is_error: bool = True, **arguments: Any) -> list[RecordCase]:
    async def make(world: World, owner: Owner) -> Arguments:
        return {"id": await world.memory(owner), **arguments}

    return [RecordCase("memory", writes, make, absent_is_error)]


def _working(*, writes: bool, **arguments: Any) -> list[RecordCase]:
    return [_in_namespace(area, writes, arguments) for area in WORKING_AREAS]


def _in_namespace(area: str, writes: bool, arguments: Arguments) -> RecordCase:  # noqa: FBT001
    async def make(world: World, owner: Owner) -> Arguments:
        return {"key": await world.working_key(area, owner), **arguments}

    return RecordCase(area, writes, make)


def _tenant(**arguments: Any) -> list[RecordCase]:
    async def make(world: World, owner: Owner) -> Arguments:
        del world, owner
        return arguments

    return [RecordCase("tenant", False, make)]


WORKING_AREAS = (
    "working memory of a session",
    "working memory of a patrol",
    "working memory that nobody opened",
)

RECORDS: dict[str, list[RecordCase]] = {
    "memory_update": _memory(writes=True, importance=0.9),
    "memory_forget": _memory(writes=True),
    "delete_memory": _memory(writes=True, absent_is_error=False),
    "working_get": _working(writes=False),
    "get_from_working_memory": _working(writes=False),
    "delete_from_working_memory": _working(writes=True),
    "search_business_context": _tenant(query="a word"),
}
SESSIONS: dict[str, SessionCase] = {
    "context_get": SessionCase(False, lambda: {"message": "hello"}),
    "working_set": SessionCase(True, lambda: {"key": "plan", "value": new_name()}),
    "save_to_working_memory": SessionCase(True, lambda: {"key": "plan", "data": new_name()}),
    "scratchpad_write": SessionCase(True, lambda: {"content": new_name()}),
    "scratchpad_read": SessionCase(False, dict),
}
SCOPES: dict[str, Callable[[], Arguments]] = {
    "memory_add": lambda: {"content": new_name()},
    "save_memory": lambda: {"content": new_name()},
    "preference_set": lambda: {"key": new_name(), "flow": "words", "slot": "s", "value": "v"},
    "preference_delete": lambda: {"key": new_name()},
    "save_skill": lambda: {"name": new_name().lower(), "content": new_name()},
}
LISTS: dict[str, ListCase] = {
    "memory_search": ListCase({"query": "the word", "limit": 20}),
    "search_memory": ListCase({"query": "the word"}),
    "list_memory_categories": ListCase({}),
    "list_categories": ListCase({}),
    # A recall shows what was said in sessions without a user, as it shows common memories.
    "conversation_search": ListCase({"query": "the word", "limit": 20}),
    "preference_resolve": ListCase({"flow": "words", "situation": "the word"}),
    "skill_search": ListCase({"query": "the word", "limit": 20}),
    "list_skills": ListCase({}),
    "graph_facts": ListCase({"about": "What of the common word?"}),
}
SKILLS: dict[str, NamedCase] = {
    "skill_load": NamedCase(False, {}),
    "get_skill": NamedCase(False, {}),
    "delete_skill": NamedCase(True, {}),
}
# Working memory is listed for the whole tenant; its test is one of its own.
WORKING_LISTS = {"list_working_memory", "search_working_memory"}
