"""Tools for skills: find one for the task, load it, and save or delete one."""

from typing import Annotated

from pydantic import Field

from services.gateway.tools import answers
from services.gateway.tools.invocation import Invocation
from services.gateway.tools.memory_tools import NoArguments, Query
from services.gateway.tools.tool import REPLACES, Tool, ToolArguments
from shared.foundation import prompt_safety
from shared.lifecycle import delete_skill
from shared.memory.skills import read, write
from shared.memory.skills import search as skill_search
from shared.memory.skills.skill import CatalogueEntry, SkillDraft, SkillInfo
from shared.platform.auth.rights import Action, Area

SET = "skills"
IF_MISSING = "Ask for a name as the context lists it."


class LoadArguments(ToolArguments):
    """Which skill to load."""

    name: str


class SearchArguments(ToolArguments):
    """What a skill is wanted for."""

    query: Query
    limit: Annotated[int, Field(ge=1, le=20)] = 5


class SaveArguments(ToolArguments):
    """A skill to save."""

    name: str
    """Such as refund-an-order."""
    content: str
    """Markdown."""
    summary: str | None = None
    """At most 15 words."""


class DeleteArguments(ToolArguments):
    """Which skill to delete."""

    name: str


async def load(call: Invocation, arguments: LoadArguments) -> str:
    """Return a skill whole, and note that it is used, in the session if there is one.

    It is not cut as other answers are: half of an instruction is worse than none.
    """
    scope = call.scope(Area.MEMORIES, Action.READ)
    session_id = None if call.session is None else call.session.id
    skill = await read.load(call.resources, call.caller, scope, arguments.name, session_id)
    lines = [prompt_safety.indented(skill.content.strip("\r\n"))]
    # No line of the content begins at the margin, so none can pass for this one.
    lines += [f"See also: {', '.join(skill.see_also)}"] if skill.see_also else []
    return prompt_safety.fence(f"Skill {skill.name}:", lines)


async def search(call: Invocation, arguments: SearchArguments) -> str:
    """Return the skills that match a query, best first, by name and summary."""
    scope = call.scope(Area.MEMORIES, Action.READ)
    found = await skill_search.search(call.resources, scope, arguments.query, arguments.limit)
    if not found.results:
        return "\n".join(["No skill matches.", *answers.incomplete(found.degraded)])
    header = f"{answers.count_of(len(found.results), 'skill', 'skills')}, best first (load one by its name):"
    return answers.listing(header, [_skill_line(hit.skill) for hit in found.results], found.degraded)


async def list_skills(call: Invocation, arguments: NoArguments) -> str:
    """Return all skills by name and summary."""
    del arguments
    entries = await read.list_in_force(call.resources, call.scope(Area.MEMORIES, Action.READ))
    if not entries:
        return "There is no skill yet."
    header = f"{answers.count_of(len(entries), 'skill', 'skills')} (load one by its name):"
    return answers.listing(header, [*map(_skill_line, entries)])


def _skill_line(skill: SkillInfo | CatalogueEntry) -> str:
    """Return `- name: summary`. A name is of letters, digits and hyphens alone."""
    return f"- {skill.name}: {prompt_safety.single_line(skill.summary)}"


async def save(call: Invocation, arguments: SaveArguments) -> str:
    """Store a skill, or replace the content of the one of this name."""
    scope = call.scope(Area.MEMORIES, Action.WRITE)
    draft = SkillDraft(content=arguments.content, summary=arguments.summary)
    skill = await write.put(call.resources, scope, arguments.name, draft, call.caller.origin)
    return f"Saved as {skill.name}."


async def delete(call: Invocation, arguments: DeleteArguments) -> str:
    """Delete the skill that exactly the agent and user of the call have."""
    scope = call.scope(Area.MEMORIES, Action.WRITE)
    if await delete_skill.delete_skill(call.resources, scope, arguments.name):
        return f"Deleted {arguments.name}."
    owner = "this agent" if scope.user_id is None else "this user"
    return f"There is no skill {answers.name_of(arguments.name)} of {owner}: nothing was deleted."


_SETS, _WITH_ROCKBOT = frozenset({SET}), frozenset({SET, "rockbot"})
TOOLS = (
    Tool(
        "skill_load",
        "Read how something is done here, before doing it.",
        LoadArguments,
        load,
        Area.MEMORIES,
        Action.READ,
        _SETS,
        if_missing=IF_MISSING,
    ),
    Tool(
        "skill_search",
        "Find skills for a task: names and summaries.",
        SearchArguments,
        search,
        Area.MEMORIES,
        Action.READ,
        _SETS,
    ),
    Tool(
        "list_skills",
        "List all skills.",
        NoArguments,
        list_skills,
        Area.MEMORIES,
        Action.READ,
        _WITH_ROCKBOT,
        in_all=False,
    ),
    Tool(
        "save_skill",
        "Save how something is done. A skill of that name is replaced.",
        SaveArguments,
        save,
        Area.MEMORIES,
        Action.WRITE,
        _WITH_ROCKBOT,
        REPLACES,
        in_all=False,
    ),
    Tool(
        "delete_skill",
        "Delete a skill.",
        DeleteArguments,
        delete,
        Area.MEMORIES,
        Action.WRITE,
        _WITH_ROCKBOT,
        REPLACES,
        in_all=False,
    ),
)
