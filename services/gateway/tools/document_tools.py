"""A tool for the tenant's documents and its business context: search them, with citations."""

from typing import Annotated

from pydantic import Field

from services.gateway.tools import answers
from services.gateway.tools.invocation import Invocation
from services.gateway.tools.memory_tools import Query
from services.gateway.tools.tool import Tool, ToolArguments
from shared.memory.documents import search as document_search
from shared.memory.documents.passage import Passage
from shared.platform.auth.rights import Action, Area

SET = "documents"


class SearchArguments(ToolArguments):
    """What to search for in documents."""

    query: Query
    """A question or keywords."""
    limit: Annotated[int, Field(ge=1, le=10)] = 5
    """At most so many; 5 if not given."""


async def search(call: Invocation, arguments: SearchArguments) -> str:
    """Return the passages that match, best first, each with where it stands."""
    found = await document_search.search(call.resources, call.caller, arguments.query, arguments.limit)
    if not found.results:
        return "\n".join(["No document says something about it.", *answers.incomplete(found.degraded)])
    header = f"{answers.count_of(len(found.results), 'passage', 'passages')}, best first (cite the title):"
    return answers.listing(header, [_passage_line(passage) for passage in found.results], found.degraded)


def _passage_line(passage: Passage) -> str:
    place = "" if passage.page is None else f"page {passage.page}"
    if not place and passage.line_from is not None:
        place = f"lines {passage.line_from} to {passage.line_to}"
    return answers.record_line(passage.title, place or "no page", passage.text)


TOOLS = (
    Tool(
        "search_business_context",
        "Search the documents of the organisation: policies, contracts, mails, transcripts. Only when the"
        " answer must come from them.",
        SearchArguments,
        search,
        Area.TENANT,
        Action.READ,
        frozenset({SET, "rockbot"}),
    ),
)
