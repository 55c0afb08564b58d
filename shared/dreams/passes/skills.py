"""Plans for skills: what a model proposes to write, and the check that decides what becomes a proposal.

A model may write a skill anew, join several into one, and write one again. It may never drop one without a
replacement, change one that it was not shown whole, or take the name of another.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from shared.dreams.passes import skill_fidelity
from shared.dreams.verification import similarity
from shared.dreams.verification.fidelity import Fault
from shared.dreams.verification.plan import to_list
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
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


@dataclass(frozen=True, slots=True)
class Material:
    """What a model was shown, and what it may do with it.

    `offered` are the skills that it was shown whole, by name; `taken` the names of all in the scope; `text`
    is the whole prompt. A skill that stands for others may deny what they don't only if `may_deny`, and one
    may stand for none only if `may_add`.
    """

    offered: Mapping[str, Skill]
    taken: Collection[str]
    text: str
    may_deny: bool = False
    may_add: bool = False

    def without(self, plans: Sequence[SkillPlan]) -> "Material":
        """Return what is left when these plans have taken their names and skills."""
        used = {name for plan in plans for name in (plan.name, *plan.replaces)}
        offered = {name: skill for name, skill in self.offered.items() if name not in used}
        return replace(self, offered=offered, taken={*self.taken, *used})


def check(proposed: ProposedSkills, material: Material) -> tuple[list[SkillPlan], list[Rejection]]:
    """Return the plans that may be proposed, and the rejections of the others."""
    accepted: list[SkillPlan] = []
    rejections: list[Rejection] = []
    used: set[str] = set()
    for position, plan in enumerate(proposed.plans):
        fault = _fault_of(plan, material, used)
        if fault is None:
            accepted.append(plan)
            used |= {plan.name, *plan.replaces}
        else:
            item = item_reference("skill", (), position)
            rejections.append(Rejection(fault.code, item, fault.detail, fault.words))
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
    RejectionCode.NO_SOURCES: "it stands for no skill that was shown",
    RejectionCode.UNCHANGED: "it says what the skill says already",
    RejectionCode.NEEDS_REPLACEMENT: "no skill is dropped without another in its place",
}


def _source_names(plan: SkillPlan, offered: Mapping[str, Skill]) -> list[str]:
    return [name for name in dict.fromkeys([plan.name, *plan.replaces]) if name in offered]


def _fault_of(plan: SkillPlan, material: Material, used: Collection[str]) -> Fault | None:
    code = _broken_rule(plan, material.offered, material.taken, used)
    sources = [material.offered[name].content for name in _source_names(plan, material.offered)]
    if code is None and not sources and not material.may_add:
        code = RejectionCode.NO_SOURCES
    if code is None and len(sources) == 1 and sources[0].split() == plan.content.split():
        code = RejectionCode.UNCHANGED
    if code is not None:
        return Fault(code, _DETAILS[code], ())
    return skill_fidelity.first_fault(
        plan.content, plan.summary, sources, material.text, may_deny=material.may_deny
    )


def _broken_rule(
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


def says_the_same(plan: SkillPlan, contents: Collection[str]) -> bool:
    """Return whether a plan consists of nearly the same words as one of these contents."""
    words = similarity.words_of(plan.content)
    return any(similarity.words_are_similar(words, similarity.words_of(text)) for text in contents)
