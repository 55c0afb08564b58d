"""The bodies of requests and responses on preferences."""

from typing import Annotated, Any

from pydantic import Field

from services.gateway.api_model import ApiModel, RequestedTrust, example
from shared.memory.preferences.preference import Condition, Effect, PreferenceDraft


class ConditionBody(ApiModel):
    """When a preference applies: in a flow, in a situation like the description, or both together."""

    flow: str | None = None
    description: str | None = None


class EffectBody(ApiModel):
    """What a preference does: it gives a slot a value, or changes the template of the response, or both."""

    slot: str | None = None
    value: Any = None
    template: str | None = None


class PreferenceBody(ApiModel):
    """A rule. `related` are keys of preferences that go along with it."""

    model_config = example(
        {
            "condition": {"flow": "report", "description": "a report is written for the board"},
            "effect": {"slot": "depth", "value": "thorough"},
            "related": ["horizon"],
            "user_id": "ada",
        }
    )

    condition: ConditionBody
    effect: EffectBody
    related: list[str] = []
    trust: RequestedTrust = None
    agent_id: str | None = None
    user_id: str | None = None

    def draft(self) -> PreferenceDraft:
        """Return the rule to store. Raise errors.Invalid if it breaks a rule."""
        condition = Condition.model_construct(**self.condition.model_dump())
        effect = Effect.model_construct(**self.effect.model_dump())
        draft = PreferenceDraft(condition=condition, effect=effect, related=tuple(self.related))
        return draft.validated()


class ResolveBody(ApiModel):
    """Where an agent is: in a flow, in a situation in words, or both."""

    model_config = example({"flow": "report", "situation": "The board meets on Friday.", "user_id": "ada"})

    flow: str | None = None
    situation: str | None = None
    agent_id: str | None = None
    user_id: str | None = None


class AppliedPreference(ApiModel):
    """A preference, its effect or the part of it that is meant, and why."""

    key: str
    effect: EffectBody
    because: str


class PreferenceConflict(ApiModel):
    """What several preferences change: a slot, or the template (null), and which one prevails."""

    slot: str | None
    prevails: str
    overruled: list[AppliedPreference]


class ResolvedPreferences(ApiModel):
    """What applies, the most specific first, and what was in conflict; what ran, and what was missing."""

    applies: list[AppliedPreference]
    conflicts: list[PreferenceConflict]
    stages: list[str]
    degraded: list[str]


class DeletedPreference(ApiModel):
    """Whether there was a preference under the key."""

    key: str
    deleted: Annotated[bool, Field(strict=True)]
