"""Tools for what was said: search the conversation, and get what memory knows for a message."""

from typing import Annotated

from pydantic import Field

from services.gateway.tools import answers
from services.gateway.tools.invocation import Invocation
from services.gateway.tools.memory_tools import SET, Query
from services.gateway.tools.tool import DEFAULT_SET, Needs, Tool, ToolArguments
from shared.context import build
from shared.context.request import ContextOptions, Request
from shared.conversation.turns import search as turn_search
from shared.conversation.turns.search import TurnFilters
from shared.conversation.turns.turn import Turn
from shared.foundation import validation
from shared.foundation.roles import MAX_TURN_CONTENT
from shared.platform.auth.rights import Action, Area

_MAX_TOKENS, _TOKEN_CHARS = 1500, 4
_MIN_BLOCK_CHARS = 120


class SearchArguments(ToolArguments):
    """What to search for in the conversation."""

    query: Query
    """What was said, in words."""
    limit: Annotated[int, Field(ge=1, le=20)] = 5
    """At most so many; 5 if not given."""


class ContextArguments(ToolArguments):
    """The message to get the context of."""

    message: str
    """The user's message, as it is."""
    max_tokens: Annotated[int, Field(ge=100, le=8000)] = _MAX_TOKENS
    """About so many at most; 1500 if not given."""


async def search(call: Invocation, arguments: SearchArguments) -> str:
    """Return the turns that match a query: those of the session, or without one those of the scope."""
    filters = TurnFilters(None if call.session is None else call.session.id)
    scope = call.scope(Area.SESSIONS, Action.READ)
    hits = await turn_search.search(call.resources, scope, arguments.query, filters, arguments.limit)
    if not hits.results:
        return "\n".join(["Nothing like that was said.", *answers.incomplete(hits.degraded)])
    lines = [_turn_line(turn) for turn, _ in hits.results]
    header = f"{answers.count_of(len(lines), 'turn', 'turns')}, best first:"
    return answers.listing(header, lines, hits.degraded)


def _turn_line(turn: Turn) -> str:
    details = f"{turn.speaker or turn.role}, {answers.day(turn.created_at)}"
    return answers.record_line(f"{turn.session_id} {turn.seq}", details, turn.content)


async def get_context(call: Invocation, arguments: ContextArguments) -> str:
    """Return the blocks of the context that the message would get. Nothing is recorded."""
    message = validation.check_text(arguments.message, "message", MAX_TURN_CONTENT)
    request = Request(
        message=message,
        system=None,
        record_turn=False,
        max_tokens=None,
        explain=False,
        options=ContextOptions(),
    )
    context = await build.build_context(call.resources, call.caller, call.session_id, request)
    texts = _shortened([block["text"] for block in context["blocks"]], arguments.max_tokens * _TOKEN_CHARS)
    texts = texts or ["Memory knows nothing for this message."]
    return "\n\n".join([*texts, *answers.incomplete(context["degraded"])])


def _shortened(texts: list[str], max_chars: int) -> list[str]:
    """Return as much of the blocks as fits. The turns, which the caller has, are none of them."""
    shown: list[str] = []
    for text in texts:
        left = max_chars - sum(map(len, shown))
        if left < _MIN_BLOCK_CHARS:
            break
        shown.append(answers.shortened_block(text, left))
    return shown


_SETS = frozenset({DEFAULT_SET, SET})
TOOLS = (
    Tool(
        "conversation_search",
        "Search what was said word for word: in this session, or if there is none in earlier ones.",
        SearchArguments,
        search,
        Area.SESSIONS,
        Action.READ,
        _SETS,
    ),
    Tool(
        "context_get",
        "Get at once what memory holds for a message of the user: pinned texts, memories, notes and results"
        " of this session. Use it at the start of a turn.",
        ContextArguments,
        get_context,
        Area.SESSIONS,
        Action.READ,
        _SETS,
        needs=Needs.SESSION,
    ),
)
