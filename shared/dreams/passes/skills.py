"""Plans for skills: what a model proposes to write, and the check that decides what becomes a proposal.

A model may write a skill anew, join several into one, and write one again. It may never drop one without a
replacement, change one that it was not shown whole, or take the name of another.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from shared.dreams.verification import similarity
from shared.dreams.verification.plan import to_list
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.dreams.verification.text_parser import parse_text
from shared.foundation import errors, model_output, validation
from shared.memory.skills.skill import (
    MAX_CONTENT,
    MAX_SUMMARY_WORDS,
    Skill,
    beginning_of,
    check_name,
    check_summary,
)


@dataclass(frozen=True, slots=True)
class SkillPlan:
    """A skill that a model proposes, the names of those that it stands for, and the sessions it names."""

    name: str
    summary: str
    content: str
    replaces: tuple[str, ...]
    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProposedSkills:
    """What a reply proposes: skills to write, and names of skills to drop."""

    plans: tuple[SkillPlan, ...]
    deletions: tuple[str, ...]


def parse(reply: str) -> ProposedSkills:
    """Parse a reply. Raises errors.InvalidModelReply if it has no list of skills."""
    items = model_output.parse_listed_objects(reply, "toSave", "skills")
    try:
        whole = model_output.parse_object(reply, "toSave", "toDelete")
    except errors.InvalidModelReply:
        whole = {}
    return ProposedSkills(tuple(map(_parse_item, items)), _texts(whole.get("toDelete")))


def _parse_item(item: model_output.JsonObject) -> SkillPlan:
    content = item.get("content")
    text = content.strip() if isinstance(content, str) else ""
    summary = item.get("summary")
    words = summary.split() if isinstance(summary, str) else []
    return SkillPlan(
        name=str(item.get("name") or "").strip(),
        summary=" ".join(words[:MAX_SUMMARY_WORDS]) or beginning_of(text),
        content=text,
        replaces=_texts(item.get("replaces") or item.get("sourceNames")),
        session_ids=_texts(item.get("sessionIds")),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for item in to_list(value) if isinstance(item, str)))


def check(
    proposed: ProposedSkills, offered: Mapping[str, Skill], taken: Collection[str]
) -> tuple[list[SkillPlan], list[Rejection]]:
    """Return the plans that may be proposed, and the rejections of the others.

    `offered` are the skills that the model was shown whole, by name; `taken` the names of all in the scope.
    """
    accepted: list[SkillPlan] = []
    rejections: list[Rejection] = []
    used: set[str] = set()
    for position, plan in enumerate(proposed.plans):
        sources = [offered[name] for name in _source_names(plan, offered)]
        code = _fault(plan, offered, taken, used) or _lost(plan, sources)
        if code is None:
            accepted.append(plan)
            used |= {plan.name, *plan.replaces}
        else:
            rejections.append(Rejection(code, item_reference("skill", (), position), _DETAILS[code]))
    dropped = [name for name in proposed.deletions if name not in used]
    rejections += [
        Rejection(
            RejectionCode.NEEDS_REPLACEMENT,
            item_reference("skill deletion", (), position),
            _DETAILS[RejectionCode.NEEDS_REPLACEMENT],
        )
        for position, _ in enumerate(dropped)
    ]
    return accepted, rejections


_DETAILS = {
    RejectionCode.MALFORMED: "the name or the summary breaks a rule",
    RejectionCode.BLANK: "it has no content",
    RejectionCode.TOO_LONG: f"its content has more than {MAX_CONTENT} characters",
    RejectionCode.UNSTORABLE: "its content cannot be stored",
    RejectionCode.UNKNOWN_ID: "it stands for a skill that was not shown whole",
    RejectionCode.DUPLICATE: "another skill has this name or says the same",
    RejectionCode.SOURCE_TAKEN: "another item has this skill",
    RejectionCode.UNCHANGED: "it says what the skill says already",
    RejectionCode.LOSES_SPECIFICS: "it loses names, numbers or dates of the skills that it stands for",
    RejectionCode.NEEDS_REPLACEMENT: "no skill is dropped without another in its place",
}


def _source_names(plan: SkillPlan, offered: Mapping[str, Skill]) -> list[str]:
    return [name for name in dict.fromkeys([plan.name, *plan.replaces]) if name in offered]


def _fault(
    plan: SkillPlan, offered: Mapping[str, Skill], taken: Collection[str], used: Collection[str]
) -> RejectionCode | None:
    faults = (
        (RejectionCode.MALFORMED, not _is_well_named(plan)),
        (RejectionCode.BLANK, not plan.content),
        (RejectionCode.TOO_LONG, len(plan.content) > MAX_CONTENT),
        (RejectionCode.UNSTORABLE, not _is_storable(plan.content)),
        (RejectionCode.UNKNOWN_ID, not set(plan.replaces) <= offered.keys()),
        (RejectionCode.DUPLICATE, plan.name in taken and plan.name not in offered),
        (RejectionCode.SOURCE_TAKEN, not {plan.name, *plan.replaces}.isdisjoint(used)),
    )
    return next((code for code, is_so in faults if is_so), None)


def _is_well_named(plan: SkillPlan) -> bool:
    try:
        check_name(plan.name)
        check_summary(plan.summary)
    except errors.Invalid:
        return False
    return True


def _is_storable(content: str) -> bool:
    try:
        validation.check_text(content, "content", allow_blank=True)
    except errors.Invalid:
        return False
    return True


def _lost(plan: SkillPlan, sources: Sequence[Skill]) -> RejectionCode | None:
    """Return why a plan may not stand for its sources, or None."""
    if not sources:
        return None
    if len(sources) == 1 and sources[0].content.strip() == plan.content:
        return RejectionCode.UNCHANGED
    written = parse_text(plan.content)
    if any(parse_text(skill.content).missing_in(written) for skill in sources):
        return RejectionCode.LOSES_SPECIFICS
    return None


def says_the_same(plan: SkillPlan, contents: Collection[str]) -> bool:
    """Return whether a plan consists of nearly the same words as one of these contents."""
    words = similarity.words_of(plan.content)
    return any(similarity.words_are_similar(words, similarity.words_of(text)) for text in contents)
