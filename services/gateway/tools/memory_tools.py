"""Tools for long-term memory: search, add, update, forget, and list the categories."""

from typing import Annotated, Any

from pydantic import Field

from services.gateway.tools import answers
from services.gateway.tools.invocation import Invocation
from services.gateway.tools.tool import ADDS, DEFAULT_SET, READS, REPLACES, Texts, Tool, ToolArguments
from shared.foundation import errors
from shared.memory.longterm import archive, read, save, update
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.memory.longterm.search import SearchOptions
from shared.platform.auth.rights import Action, Area

SET = "memory"
IF_MISSING = "Search with memory_search first: the id stands in brackets before each memory."
MAX_QUERY = 16_000
Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY)]
Importance = Annotated[float, Field(ge=0, le=1)]
_FIELDS = ("content", "category", "tags", "importance")


class SearchArguments(ToolArguments):
    """What to search for."""

    query: Query
    """What you want to know, in words."""
    category: str | None = None
    """Only this category, such as user-preferences, and those below it."""
    limit: Annotated[int, Field(ge=1, le=20)] = 8
    """At most so many; 8 if not given."""


class AddArguments(ToolArguments):
    """A memory to save."""

    content: str
    """One fact in a whole sentence that can be understood alone."""
    category: str | None = None
    """A path, such as user-preferences/travel."""
    tags: Texts = []
    importance: Importance = 0.5
    """0 to 1; 0.5 if not given."""


class UpdateArguments(ToolArguments):
    """What to change of a memory."""

    id: str
    """From memory_search."""
    content: str | None = None
    category: str | None = None
    tags: Texts | None = None
    importance: Importance | None = None


class ForgetArguments(ToolArguments):
    """Which memory to archive."""

    id: str
    """From memory_search."""
    reason: Annotated[str | None, Field(max_length=1000)] = None


class NoArguments(ToolArguments):
    """Nothing."""


async def search(call: Invocation, arguments: SearchArguments) -> str:
    """Return the memories that match a query, best first."""
    return await find(call, arguments.query, MemoryFilters(category=arguments.category), arguments.limit)


async def find(call: Invocation, query: str, filters: MemoryFilters, limit: int) -> str:
    """Return memories that match a query and filters, best first."""
    scope = call.scope(Area.MEMORIES, Action.READ)
    hits = await memory_search.search(call.resources, scope, query, filters, SearchOptions(limit))
    lines = [
        memory_line(result.shown, "evidence" if result.text_of == "evidence" else "")
        for result in hits.results
    ]
    return _described(lines, "best first", hits.degraded)


def describe(memories: list[Memory], order: str, degraded: list[str]) -> str:
    """Return memories with their ids, or that there are none."""
    return _described([memory_line(memory) for memory in memories], order, degraded)


def _described(lines: list[str], order: str, degraded: list[str]) -> str:
    if not lines:
        return "\n".join(["No memory matches. Other words may find more.", *answers.incomplete(degraded)])
    header = f"{answers.count_of(len(lines), 'memory', 'memories')}, {order}:"
    return answers.listing(header, lines, degraded)


def memory_line(memory: Memory, mark: str = "") -> str:
    """Return `- [id] (category, day): content`; the day is that of the event, if it is known.

    A mark follows the day.
    """
    day = answers.day(memory.occurred_at or memory.created_at)
    details = ", ".join(filter(None, [memory.category or "general", day, mark]))
    return answers.record_line(memory.id, details, memory.content)


async def add(call: Invocation, arguments: AddArguments) -> str:
    """Save a memory."""
    fields = arguments.model_dump(include={"content", "category", "importance"})
    return await save_draft(call, MemoryDraft(**fields, tags=tuple(arguments.tags)))


async def save_draft(call: Invocation, draft: MemoryDraft) -> str:
    """Save a memory, and return under which id."""
    scope = call.scope(Area.MEMORIES, Action.WRITE)
    saved = await save.save(call.resources, scope, call.caller, draft.validated(), call.idempotency_key)
    if saved["reinforcement_count"] > 1:
        return f"Known already as [{saved['id']}]; now confirmed once more."
    return f"Saved as [{saved['id']}]."


async def change(call: Invocation, arguments: UpdateArguments) -> str:
    """Change the given fields of a memory."""
    changes: dict[str, Any] = {
        name: getattr(arguments, name) for name in _FIELDS if getattr(arguments, name) is not None
    }
    if not changes:
        raise errors.Invalid("content", "or another field must be given: nothing is to be changed")
    memory = await update.update(call.resources, call.caller, arguments.id, changes)
    return answers.listing("It says now:", [memory_line(memory)])


async def forget(call: Invocation, arguments: ForgetArguments) -> str:
    """Archive a memory."""
    memory = await archive.archive(call.resources, call.caller, arguments.id, arguments.reason)
    header = f"Forgotten; for {call.resources.settings.retention_archived_days:g} days it can be restored:"
    return answers.listing(header, [memory_line(memory)])


async def list_categories(call: Invocation, arguments: NoArguments) -> str:
    """Return the categories with the number of memories in each."""
    del arguments
    scope = call.scope(Area.MEMORIES, Action.READ)
    rows = await read.list_categories(call.resources, scope)
    if not rows:
        return "No memory has a category yet."
    lines = [f"- {row['category']}: {row['count']}" for row in rows]
    return answers.listing("Categories with the number of their memories:", lines)


_IN_DEFAULT, _IN_SET = frozenset({DEFAULT_SET, SET}), frozenset({SET})
TOOLS = (
    Tool(
        "memory_search",
        "Search long-term memory: facts, preferences and decisions from earlier sessions. Use it before you"
        " ask the user for something they may have said already.",
        SearchArguments,
        search,
        Area.MEMORIES,
        Action.READ,
        _IN_DEFAULT,
        READS,
    ),
    Tool(
        "memory_add",
        "Save something worth knowing in later sessions: a fact, a preference, a decision. One per call.",
        AddArguments,
        add,
        Area.MEMORIES,
        Action.WRITE,
        _IN_DEFAULT,
        ADDS,
    ),
    Tool(
        "memory_update",
        "Correct a memory that is wrong or out of date. Fields that are not given stay.",
        UpdateArguments,
        change,
        Area.MEMORIES,
        Action.WRITE,
        _IN_DEFAULT,
        REPLACES,
        if_missing=IF_MISSING,
    ),
    Tool(
        "memory_forget",
        "Take a memory out of every search: the user asks for it, or it no longer holds. Can be undone.",
        ForgetArguments,
        forget,
        Area.MEMORIES,
        Action.WRITE,
        _IN_DEFAULT,
        REPLACES,
        if_missing=IF_MISSING,
    ),
    Tool(
        "list_memory_categories",
        "List the categories of long-term memory.",
        NoArguments,
        list_categories,
        Area.MEMORIES,
        Action.READ,
        _IN_SET | {"rockbot"},
    ),
)
