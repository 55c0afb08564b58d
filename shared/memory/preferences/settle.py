"""Settle which preferences apply when several change the same: a pure function over plain records.

Two preferences contradict each other if they give one slot different values (by their JSON types: 1 is not
true), or change the template of the response differently. The more specific one prevails, and of two that are
equally specific the later one. A preference whose every part gave way does not apply; the others apply with
the parts that prevail.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.foundation import json_values
from shared.memory.preferences.preference import Effect, EffectPart, Preference, PreferenceBasis, effect_json

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# Why one goes before another, in the order in which they are compared.
_REASONS = (
    "a condition that is met whole goes before one of which a part was not asked about",
    "what is stored goes before the domain file",
    "a condition that is met goes before a relation, and a nearer relation before a farther one",
    "a flow with a description goes before a flow, and a flow before a description",
    "a user's own goes before the agent's",
    "the later one goes before the earlier one",
    "both are of the same time: the first by key goes before the other",
)


@dataclass(frozen=True, slots=True)
class Match:
    """A preference that was found, and why. `links` is how far it is from one whose condition is met.

    `is_met_whole` tells whether the question was about each part of that condition: nobody knows whether the
    others are met.
    """

    preference: Preference
    because: str
    links: int = 0
    is_met_whole: bool = True


@dataclass(frozen=True, slots=True)
class Applied:
    """A preference that applies, with the parts of its effect that prevail, and why it was found."""

    key: str
    effect: Effect
    because: str

    def to_json(self) -> dict[str, Any]:
        """Return it as the API does."""
        return {"key": self.key, "effect": effect_json(self.effect), "because": self.because}


@dataclass(frozen=True, slots=True)
class Conflict:
    """A slot, or the template (None), that several change: which one prevails, and why the others don't."""

    slot: str | None
    prevails: str
    overruled: tuple[Applied, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as the API does."""
        overruled = [item.to_json() for item in self.overruled]
        return {"slot": self.slot, "prevails": self.prevails, "overruled": overruled}


def settle(matches: Sequence[Match]) -> tuple[list[Applied], list[Conflict]]:
    """Return what applies, the most specific first, and what was in conflict. No two have the same key."""
    ordered = sorted(matches, key=precedence)
    winners: dict[str | None, tuple[Match, EffectPart]] = {}
    overruled: dict[str | None, list[Applied]] = {}
    applied: list[Applied] = []
    for match in ordered:
        prevailing: list[EffectPart] = []
        for part in match.preference.effect.parts:
            winner, prevailing_part = winners.setdefault(part.slot, (match, part))
            if json_values.are_same(prevailing_part.content, part.content):
                prevailing.append(part)
            else:
                because = _reason(winner, match)
                overruled.setdefault(part.slot, []).append(_with_parts(match, [part], because))
        if prevailing:
            applied.append(_with_parts(match, prevailing, match.because))
    conflicts = [
        Conflict(slot, winners[slot][0].preference.key, tuple(losers)) for slot, losers in overruled.items()
    ]
    return applied, conflicts


def _with_parts(match: Match, parts: Sequence[EffectPart], because: str) -> Applied:
    by_slot = {part.slot: part.content for part in parts}
    slot = next((slot for slot in by_slot if slot is not None), None)
    effect = Effect.model_construct(
        slot=slot, value=None if slot is None else by_slot[slot], template=by_slot.get(None)
    )
    return Applied(match.preference.key, effect, because)


def precedence(match: Match) -> tuple[Any, ...]:
    """Return the position of a match, in the order of `_REASONS`: the lowest prevails."""
    preference = match.preference
    condition = preference.condition
    specificity = 2 * (condition.flow is not None) + (condition.description is not None)
    age = -((preference.updated_at or _LONG_AGO) - _LONG_AGO).total_seconds()
    is_from_file = preference.basis is PreferenceBasis.DOMAIN
    is_agents = preference.user_id is None
    return not match.is_met_whole, is_from_file, match.links, -specificity, is_agents, age, preference.key


def _reason(winner: Match, loser: Match) -> str:
    pairs = zip(precedence(winner), precedence(loser), _REASONS, strict=True)
    return next(reason for of_winner, of_loser, reason in pairs if of_winner != of_loser)
