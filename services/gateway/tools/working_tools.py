"""Tools for working memory: short-lived entries that sessions, patrols and subagents share."""

from typing import Annotated

from pydantic import Field

from services.gateway.tools import answers
from services.gateway.tools.invocation import Invocation
from services.gateway.tools.tool import REPLACES, Needs, Texts, Tool, ToolArguments
from shared.foundation import prompt_safety
from shared.memory.working import entries, keys, render
from shared.memory.working import search as working_search
from shared.memory.working.search import WorkingFilters
from shared.memory.working.working_entry import WorkingEntry
from shared.platform.auth.rights import Action, Area

SET = "working"
IF_MISSING = "It may have expired. Ask for a key as the context lists it."
_MAX_VALUE_CHARS = 24_000
Minutes = Annotated[float, Field(gt=0, le=7 * 24 * 60)]


class GetArguments(ToolArguments):
    """Which entry to read."""

    key: str
    """As listed. A large value gives an outline with the keys of its parts."""


class SetArguments(ToolArguments):
    """An entry to write."""

    key: str
    """A short name, such as plan."""
    value: str
    ttl_minutes: Minutes | None = None
    """How long it lives; 5 if not given."""
    tags: Texts = []


class ListArguments(ToolArguments):
    """Which entries to list."""

    namespace: str | None = None
    """Where: such as patrol/mail, or subagent; this session's own if not given."""


class SearchArguments(ToolArguments):
    """What to search for in working memory."""

    query: str | None = None
    category: str | None = None
    tags: Texts = []
    namespace: str | None = None
    """Only there, such as subagent."""
    limit: Annotated[int, Field(ge=1, le=20)] = 8


class DeleteArguments(ToolArguments):
    """Which entry to delete."""

    key: str
    """As listed."""


async def get(call: Invocation, arguments: GetArguments) -> str:
    """Return the value of an entry, or the outline of a large one."""
    path = keys.resolve(arguments.key, call.namespace)
    entry = await entries.get(call.resources, call.caller, path)
    value = entry.value if len(entry.value) <= _MAX_VALUE_CHARS else entry.value[:_MAX_VALUE_CHARS] + " …"
    header = f"{entry.key} (expires in {render.format_ttl(entry.remaining)}):"
    return prompt_safety.fence(header, [prompt_safety.indented(value)])


async def put(call: Invocation, arguments: SetArguments) -> str:
    """Write an entry."""
    return await write(call, arguments.key, arguments.value, arguments.ttl_minutes, None, arguments.tags)


async def write(
    call: Invocation, key: str, value: str, ttl_minutes: float | None, category: str | None, tags: list[str]
) -> str:
    """Write an entry, and return its key and for how long it lives."""
    path = keys.resolve(key, call.namespace, write=True)
    ttl_seconds = None if ttl_minutes is None else ttl_minutes * 60
    entry = await entries.put(
        call.resources, call.caller, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags
    )
    return f"Stored as {entry.key}; expires in {render.format_ttl(entry.remaining)}."


async def list_entries(call: Invocation, arguments: ListArguments) -> str:
    """Return what there is, without values."""
    prefix = keys.resolve_prefix(arguments.namespace or "", call.namespace)
    infos = await entries.list_entries(call.resources, call.caller, prefix)
    if not infos:
        return f"Nothing is stored in {prefix or 'working memory'}."
    lines = [prompt_safety.single_line(render.inventory_line(info)) for info in infos]
    return answers.listing("Working memory (read a value by its key):", lines)


async def search(call: Invocation, arguments: SearchArguments) -> str:
    """Return the entries that match, best first, with the beginning of each value."""
    prefix = keys.resolve_prefix(arguments.namespace, call.namespace) if arguments.namespace else ""
    filters = WorkingFilters(prefix, arguments.category, tuple(arguments.tags))
    hits = await working_search.search(call.resources, call.caller, arguments.query, filters, arguments.limit)
    if not hits.results:
        return "\n".join(["Nothing matches in working memory.", *answers.incomplete(hits.degraded)])
    header = "Working memory, best first (read a whole value by its key):"
    return answers.listing(header, [_preview_line(entry) for entry, _ in hits.results], hits.degraded)


def _preview_line(entry: WorkingEntry) -> str:
    time_left = f"expires in {render.format_ttl(entry.remaining)}"
    return answers.record_line(entry.key, time_left, render.preview(entry.value))


async def delete(call: Invocation, arguments: DeleteArguments) -> str:
    """Delete an entry. It may lie in another namespace: so an agent dismisses what a patrol has found."""
    path = keys.check_writable(keys.resolve(arguments.key, call.namespace))
    if await entries.delete(call.resources, call.caller, path):
        return f"Deleted {path}."
    return f"There is no {path}: nothing was deleted."


_IN_SET, _WITH_ROCKBOT = frozenset({SET}), frozenset({SET, "rockbot"})
TOOLS = (
    Tool(
        "working_get",
        "Read an entry of working memory: notes of this session, findings of patrols, results of subagents.",
        GetArguments,
        get,
        Area.WORKING_MEMORY,
        Action.READ,
        _IN_SET,
        if_missing=IF_MISSING,
    ),
    Tool(
        "working_set",
        "Keep something for this session alone, for minutes: a plan, a large result. An entry of that key is"
        " replaced.",
        SetArguments,
        put,
        Area.WORKING_MEMORY,
        Action.WRITE,
        _IN_SET,
        REPLACES,
        Needs.NAMESPACE,
    ),
    Tool(
        "list_working_memory",
        "List the keys of working memory.",
        ListArguments,
        list_entries,
        Area.WORKING_MEMORY,
        Action.READ,
        _WITH_ROCKBOT,
    ),
    Tool(
        "search_working_memory",
        "Search working memory; without a query, the newest entries.",
        SearchArguments,
        search,
        Area.WORKING_MEMORY,
        Action.READ,
        _WITH_ROCKBOT,
    ),
    Tool(
        "delete_from_working_memory",
        "Delete an entry of working memory, such as a finding that is dealt with.",
        DeleteArguments,
        delete,
        Area.WORKING_MEMORY,
        Action.WRITE,
        _WITH_ROCKBOT,
        REPLACES,
    ),
)
