"""Tools for preferences: which rules of the user apply here, and set or delete one."""

import json
from typing import Any

from services.gateway.tools import answers
from services.gateway.tools.invocation import Invocation
from services.gateway.tools.tool import REPLACES, Tool, ToolArguments
from shared.lifecycle import delete_preference
from shared.memory.preferences import resolve, write
from shared.memory.preferences.preference import Condition, Effect, PreferenceDraft
from shared.memory.preferences.resolve import Question
from shared.platform.auth.rights import Action, Area

SET = "preferences"


class ResolveArguments(ToolArguments):
    """Where the agent is."""

    flow: str | None = None
    """The id of the flow, such as report."""
    situation: str | None = None
    """Or what is going on, in words."""


class SetArguments(ToolArguments):
    """A rule to store."""

    key: str
    """A short name, such as report/depth."""
    flow: str | None = None
    """When: in this flow."""
    situation: str | None = None
    """When: in a situation like this one, in words."""
    slot: str | None = None
    """What it sets."""
    value: str | None = None
    """To what it sets the slot."""
    template: str | None = None
    """Or how the answer is to be written."""


class DeleteArguments(ToolArguments):
    """Which rule to delete."""

    key: str


async def resolve_preferences(call: Invocation, arguments: ResolveArguments) -> str:
    """Return the rules that apply, each with its reason."""
    scope = call.scope(Area.MEMORIES, Action.READ)
    question = Question(arguments.flow, arguments.situation)
    found = await resolve.resolve(call.resources, scope, question)
    if not found["applies"]:
        return "\n".join(["No preference applies here.", *answers.incomplete(found["degraded"])])
    lines = [_rule_line(rule) for rule in found["applies"]]
    return answers.listing("Preferences that apply, the most specific first:", lines, found["degraded"])


def _rule_line(rule: dict[str, Any]) -> str:
    effect = json.dumps(rule["effect"], ensure_ascii=False)
    return answers.record_line(rule["key"], str(rule["because"]), effect)


async def set_preference(call: Invocation, arguments: SetArguments) -> str:
    """Store a rule."""
    draft = PreferenceDraft(
        condition=Condition(flow=arguments.flow, description=arguments.situation),
        effect=Effect(slot=arguments.slot, value=arguments.value, template=arguments.template),
    )
    scope = call.scope(Area.MEMORIES, Action.WRITE)
    preference = await write.put(
        call.resources, call.caller, scope, arguments.key, draft.validated(), by_model=True
    )
    if preference.requires_user_permission and preference.permission_granted_at is None:
        return f"Stored as {preference.key}. It applies when the user permits it."
    return f"Stored as {preference.key}."


async def delete(call: Invocation, arguments: DeleteArguments) -> str:
    """Delete a rule."""
    scope = call.scope(Area.MEMORIES, Action.WRITE)
    if await delete_preference.delete_preference(call.resources, scope, arguments.key, None):
        return f"Deleted {answers.name_of(arguments.key)}."
    return f"There is no preference {answers.name_of(arguments.key)} of this user: nothing was deleted."


_SETS = frozenset({SET})
TOOLS = (
    Tool(
        "preference_resolve",
        "Ask which preferences of the user apply in a flow or a situation, before acting in it.",
        ResolveArguments,
        resolve_preferences,
        Area.MEMORIES,
        Action.READ,
        _SETS,
    ),
    Tool(
        "preference_set",
        "Store how the user wants something done from now on. A rule of that key is replaced.",
        SetArguments,
        set_preference,
        Area.MEMORIES,
        Action.WRITE,
        _SETS,
        REPLACES,
    ),
    Tool(
        "preference_delete",
        "Delete a preference that the user no longer has.",
        DeleteArguments,
        delete,
        Area.MEMORIES,
        Action.WRITE,
        _SETS,
        REPLACES,
    ),
)
