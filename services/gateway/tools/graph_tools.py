"""A tool for the knowledge graph: what is known of the people and things that a text names."""

from datetime import datetime

from services.gateway.tools import answers
from services.gateway.tools.invocation import Invocation
from services.gateway.tools.memory_tools import MAX_QUERY, Query
from services.gateway.tools.tool import Tool, ToolArguments
from shared.foundation import validation
from shared.memory.graph import read
from shared.memory.graph.traversal import Step
from shared.platform.auth.rights import Action, Area

SET = "graph"
_HOPS, _LIMIT = 2, 30


class FactsArguments(ToolArguments):
    """Whom or what the facts are to be about."""

    about: Query
    """Names, or a text with names."""
    as_of: datetime | None = None
    """What held then; now if not given."""


async def list_facts(call: Invocation, arguments: FactsArguments) -> str:
    """Return what is connected with the entities that a text names: nearest first, then most certain."""
    scope = call.scope(Area.MEMORIES, Action.READ)
    about = validation.check_text(arguments.about, "about", MAX_QUERY)
    entities = await read.match(call.resources, call.caller, scope, about, arguments.as_of)
    if not entities:
        return "The graph has no such name. Try the full name, or search memories."
    seeds = [entity.id for entity in entities]
    steps = await read.traverse(call.resources, scope, seeds, _HOPS, _LIMIT, arguments.as_of)
    if not steps:
        return "The graph has this name, and no fact about it."
    return answers.listing("Facts, nearest first:", [*map(_fact_line, steps)])


def _fact_line(step: Step) -> str:
    """Return `- Alice --works_on--> RockBot (confidence=0.90): the fact as a sentence`."""
    return step.line if step.fact is None else f"{step.line}: {answers.shortened_line(step.fact)}"


TOOLS = (
    Tool(
        "graph_facts",
        "Look up how people, projects and things are connected.",
        FactsArguments,
        list_facts,
        Area.MEMORIES,
        Action.READ,
        frozenset({SET}),
    ),
)
