"""Tools under the names and arguments that RockBot agents call them by, so that these go on working.

Where RockBot's name is as good as another, the tool stands in the file of its set and has only this name.
"""

from typing import Annotated

from pydantic import BeforeValidator, Field

from services.gateway.tools import answers, memory_tools, skill_tools, working_tools
from services.gateway.tools.invocation import Invocation
from services.gateway.tools.memory_tools import NoArguments
from services.gateway.tools.tool import ADDS, REPLACES, Needs, Texts, Tool, ToolArguments
from shared.foundation import validation
from shared.lifecycle import delete_memory
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import MemoryDraft
from shared.platform.auth.rights import Action, Area

SET = "rockbot"
_LIMIT = 20


def _split(tags: object) -> object:
    """Return tags as a list: these agents write them as one text with commas, too."""
    return [tag.strip() for tag in tags.split(",") if tag.strip()] if isinstance(tags, str) else tags


Tags = Annotated[Texts, BeforeValidator(_split)]


class SaveArguments(ToolArguments):
    """A memory to save."""

    content: str
    category: str | None = None
    tags: Tags = []


class SearchArguments(ToolArguments):
    """What to search for."""

    query: Annotated[str | None, Field(max_length=memory_tools.MAX_QUERY)] = None
    category: str | None = None
    tags: Tags = []


class DeleteArguments(ToolArguments):
    """Which memory to delete."""

    id: str


class SaveWorkingArguments(ToolArguments):
    """An entry to write."""

    key: str
    data: str
    ttl_minutes: working_tools.Minutes | None = None
    category: str | None = None
    tags: Tags = []


async def save(call: Invocation, arguments: SaveArguments) -> str:
    """Save a memory."""
    draft = MemoryDraft(content=arguments.content, category=arguments.category, tags=tuple(arguments.tags))
    return await memory_tools.save_draft(call, draft)


async def search(call: Invocation, arguments: SearchArguments) -> str:
    """Return the memories that match, or without a query those that were seen last."""
    filters = MemoryFilters(category=arguments.category, tags=tuple(arguments.tags))
    if arguments.query is not None and not validation.is_blank(arguments.query):
        return await memory_tools.find(call, arguments.query, filters, _LIMIT)
    scope = call.scope(Area.MEMORIES, Action.READ)
    memories = await memory_search.list_newest(call.resources, scope, filters, _LIMIT)
    return memory_tools.describe(memories, "seen last first", [])


async def delete(call: Invocation, arguments: DeleteArguments) -> str:
    """Delete a memory for good, and return what it said."""
    memory = await delete_memory.delete_memory(call.resources, call.caller, arguments.id)
    if memory is None:
        name = answers.name_of(arguments.id)
        return f"There is no memory {name}: nothing was deleted. Search for it to get its id."
    return memory_tools.describe([memory], "deleted", [])


async def save_working(call: Invocation, arguments: SaveWorkingArguments) -> str:
    """Write an entry of working memory."""
    return await working_tools.write(
        call, arguments.key, arguments.data, arguments.ttl_minutes, arguments.category, arguments.tags
    )


_SETS = frozenset({SET})
TOOLS = (
    Tool(
        "save_memory",
        "Save a fact to long-term memory.",
        SaveArguments,
        save,
        Area.MEMORIES,
        Action.WRITE,
        _SETS,
        ADDS,
    ),
    Tool(
        "search_memory",
        "Search long-term memory; without a query, what was seen last.",
        SearchArguments,
        search,
        Area.MEMORIES,
        Action.READ,
        _SETS,
    ),
    Tool(
        "delete_memory",
        "Delete a memory for good.",
        DeleteArguments,
        delete,
        Area.MEMORIES,
        Action.WRITE,
        _SETS,
        REPLACES,
    ),
    Tool(
        "list_categories",
        "List the categories of long-term memory.",
        NoArguments,
        memory_tools.list_categories,
        Area.MEMORIES,
        Action.READ,
        _SETS,
    ),
    Tool(
        "save_to_working_memory",
        "Keep something in working memory.",
        SaveWorkingArguments,
        save_working,
        Area.WORKING_MEMORY,
        Action.WRITE,
        _SETS,
        REPLACES,
        Needs.NAMESPACE,
    ),
    Tool(
        "get_from_working_memory",
        "Read an entry of working memory.",
        working_tools.GetArguments,
        working_tools.get,
        Area.WORKING_MEMORY,
        Action.READ,
        _SETS,
        if_missing=working_tools.IF_MISSING,
    ),
    Tool(
        "get_skill",
        "Read a skill.",
        skill_tools.LoadArguments,
        skill_tools.load,
        Area.MEMORIES,
        Action.READ,
        _SETS,
        if_missing=skill_tools.IF_MISSING,
    ),
)
