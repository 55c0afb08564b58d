"""Tools for the scratchpad of a session: note something, and read the notes."""

from services.gateway.tools import answers
from services.gateway.tools.invocation import Invocation
from services.gateway.tools.memory_tools import NoArguments
from services.gateway.tools.tool import ADDS, Needs, Tool, ToolArguments
from shared.conversation.scratchpad import read, write
from shared.conversation.scratchpad.snippet import Snippet
from shared.platform.auth.rights import Action, Area

SET = "scratchpad"


class WriteArguments(ToolArguments):
    """A snippet to note."""

    content: str
    """One finding, in a sentence or two."""


async def write_snippet(call: Invocation, arguments: WriteArguments) -> str:
    """Note a snippet."""
    snippet = await write.write(
        call.resources, call.caller, call.session_id, arguments.content, call.idempotency_key
    )
    if snippet["count"] > 1:
        return f"Noted before; that is {snippet['count']} times now."
    return "Noted."


async def read_snippets(call: Invocation, arguments: NoArguments) -> str:
    """Return all snippets, oldest first."""
    del arguments
    snippets, degraded = await read.list_snippets(call.resources, call.caller, call.session_id)
    if not snippets:
        return "The scratchpad is empty."
    return answers.listing("Scratchpad, oldest first:", [*map(_snippet_line, snippets)], degraded)


def _snippet_line(snippet: Snippet) -> str:
    return answers.record_line(snippet.id, answers.count_of(snippet.count, "time", "times"), snippet.content)


_SETS = frozenset({SET})
TOOLS = (
    Tool(
        "scratchpad_write",
        "Note what a flow has found out, at its end. What recurs is kept beyond the session.",
        WriteArguments,
        write_snippet,
        Area.SESSIONS,
        Action.WRITE,
        _SETS,
        ADDS,
        Needs.SESSION,
    ),
    Tool(
        "scratchpad_read",
        "Read the notes of this session.",
        NoArguments,
        read_snippets,
        Area.SESSIONS,
        Action.READ,
        _SETS,
        needs=Needs.SESSION,
    ),
)
