"""Resolve which preferences apply in a flow or a situation, and why.

A preference is found by its flow, or by a described situation that is like the given one. One that names both
needs both, as far as both are given. From there it is up to two links of `related`. A preference
that was found by a relation applies whatever its own condition says: the one that names it says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.foundation import errors, validation
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.preferences import domain_file, queries
from shared.memory.preferences.likeness import is_alike
from shared.memory.preferences.preference import Preference
from shared.memory.preferences.settle import Match, precedence, settle
from shared.memory.preferences.situation import find_alike
from shared.platform.resources import Resources
from shared.search.search_results import SearchResults

MAX_SITUATION = 16_000
MAX_LINKS = 2
"""How many relations are followed, one after the other."""
MAX_RELATED_PER_LINK = 1000
"""Preferences that are looked up at most for each link: those that the most specific ones name first."""
MAX_OF_FLOW = 1000
"""Preferences of one flow that are taken at most: the most specific and latest."""
BY_FLOW, BY_RELATION = "flow", "related"
"""Stages: preferences were looked up by their flow, and by relations."""
_ABOUT_IT = "the situation is about what it says"
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """What preferences are asked for: the flow that an agent is in, the situation in words, or both."""

    flow: str | None = None
    situation: str | None = None

    def validated(self) -> "Question":
        """Return the question. Raise errors.Invalid for one that names neither, or breaks a rule."""
        if self.flow is None and self.situation is None:
            raise errors.Invalid("flow", "must be given, or a situation")
        if self.flow is not None:
            validation.check_technical_id(self.flow, "flow")
        if self.situation is not None:
            validation.check_text(self.situation, "situation", MAX_SITUATION)
        return self


@dataclass(frozen=True, slots=True)
class _Found:
    """The preferences that were found for a question, by key, each for the first reason that was found.

    `alike_ids` are those whose description the search found to be like the situation.
    """

    question: Question
    alike_ids: frozenset[str]
    matches: dict[str, Match] = field(default_factory=dict)

    def add(self, preferences: Iterable[Preference]) -> None:
        """Add those preferences whose condition is met."""
        for preference in preferences:
            reasons = self._reasons(preference)
            if reasons:
                is_met_whole = len(reasons) == len(preference.condition.model_dump(exclude_none=True))
                match = Match(preference, ", and ".join(reasons), is_met_whole=is_met_whole)
                self.matches.setdefault(preference.key, match)

    def add_related(self, preference: Preference, parent: Match) -> Match:
        """Add a preference that another one names as related, and return its match."""
        because = f"it is related to '{parent.preference.key}': {parent.because}"
        match = Match(preference, because, parent.links + 1, parent.is_met_whole)
        self.matches[preference.key] = match
        return match

    def _reasons(self, preference: Preference) -> list[str]:
        """Return why a condition is met, or nothing: what it names and the question tells must agree."""
        condition, question = preference.condition, self.question
        reasons: list[str] = []
        if condition.flow is not None and question.flow is not None:
            if condition.flow != question.flow:
                return []
            reasons.append(f"its flow is '{condition.flow}'")
        if condition.description is not None and question.situation is not None:
            is_found = preference.id in self.alike_ids
            if not is_found and not is_alike(question.situation, condition.description, None, None):
                return []
            is_learnt = preference.is_learnt
            reasons.append(_ABOUT_IT if is_learnt else f"the situation is like '{condition.description}'")
        return reasons


async def resolve(resources: Resources, scope: Scope, question: Question) -> JsonObject:
    """Return {applies, conflicts, stages, degraded}: what applies to a scope, the most specific first.

    Raises errors.Unavailable if Postgres is unavailable.
    """
    question.validated()
    alike: SearchResults[Preference] = SearchResults()
    if question.situation is not None:
        alike = await find_alike(resources, scope, question.situation, question.flow)
    stages, degraded = list(alike.stages), list(alike.degraded)
    found = _Found(question, frozenset(preference.id for preference in alike.results))
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        from_file = await _read_domain_file(tx, resources, scope)
        if question.flow is not None:
            stages.append(BY_FLOW)
            of_flow = await queries.list_by_flow(tx, scope, question.flow, MAX_OF_FLOW + 1)
            degraded += [BY_FLOW] if len(of_flow) > MAX_OF_FLOW else []
            found.add(of_flow[:MAX_OF_FLOW])
        found.add([*alike.results, *from_file.values()])
        has_relations, is_cut = await _follow_relations(tx, scope, from_file, found)
        stages += [BY_RELATION] if has_relations else []
        degraded += [BY_RELATION] if is_cut else []
    applied, conflicts = settle(list(found.matches.values()))
    return {
        "applies": [item.to_json() for item in applied],
        "conflicts": [conflict.to_json() for conflict in conflicts],
        "stages": stages,
        "degraded": degraded,
    }


async def _read_domain_file(tx: Transaction, resources: Resources, scope: Scope) -> dict[str, Preference]:
    """Return the preferences of the file under whose keys the scope has stored nothing."""
    from_file = domain_file.preferences(resources.settings, scope)
    stored = await queries.list_by_keys(tx, scope, list(from_file)) if from_file else {}
    return {key: preference for key, preference in from_file.items() if key not in stored}


async def _follow_relations(
    tx: Transaction, scope: Scope, from_file: Mapping[str, Preference], found: _Found
) -> tuple[bool, bool]:
    """Add what is related to what was found. Return whether there was any, and whether it was too much.

    Whoever names a preference that was found before, itself even, adds nothing, so circles end.
    """
    has_relations, is_cut = False, False
    reached = sorted(found.matches.values(), key=precedence)
    for _ in range(MAX_LINKS):
        parents = _related_keys(reached, found.matches)
        if not parents:
            break
        has_relations, is_cut = True, is_cut or len(parents) > MAX_RELATED_PER_LINK
        keys = list(parents)[:MAX_RELATED_PER_LINK]
        known = {**from_file, **await queries.list_by_keys(tx, scope, keys)}
        reached = [found.add_related(known[key], parents[key]) for key in keys if key in known]
    return has_relations, is_cut


def _related_keys(reached: Iterable[Match], found: Mapping[str, Match]) -> dict[str, Match]:
    """Return the keys that matches name and that were not found, each with the first match that names it."""
    parents: dict[str, Match] = {}
    for match in reached:
        for key in match.preference.related:
            if key not in found:
                parents.setdefault(key, match)
    return parents
