"""The skills of a context: the catalogue, those that match the message, and those that they name.

Each part of a skill is shown once, with the turn for which it was new, and replayed with that turn as long as
it is in the window. A line is replayed only while it says what the skill says now. The catalogue therefore
stands in a session once, and a skill that is added later, or changed, is listed with the turn that follows.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from shared.context import blocks
from shared.context.queries import SessionInputs
from shared.context.request import Request
from shared.context.types import BlockKind, ContextInputs, SkillInputs
from shared.conversation.sessions.session import Session
from shared.conversation.turns.turn import RecalledLine, SkillPart, Turn
from shared.memory.skills import search
from shared.memory.skills.skill import Skill
from shared.platform.resources import Resources

_CATALOGUE_STEP = 10
"""Lines of the catalogue that give way at once under a token budget."""


async def find(
    resources: Resources, session: Session, found: SessionInputs, request: Request, inputs: ContextInputs
) -> SkillInputs:
    """Return the skills in force in the session's scope, and those that match the message, best first."""
    if not found.skills:
        return SkillInputs()
    settings, shows = resources.settings, request.options.shows
    matching = await _search(resources, session, found, request, inputs)
    return SkillInputs(
        {entry.id: entry for entry in found.skills},
        tuple(matching),
        settings.context_max_skill_catalogue if shows(BlockKind.SKILL_CATALOGUE) else 0,
        settings.context_max_skill_chars,
    )


async def _search(
    resources: Resources, session: Session, known: SessionInputs, request: Request, inputs: ContextInputs
) -> list[Skill]:
    limit = resources.settings.context_max_skills
    if limit == 0 or not request.options.shows(BlockKind.SKILLS):
        return []
    found = await search.search(resources, session.scope, request.message, limit, among=known.skills)
    inputs.degraded += found.degraded
    return [hit.skill for hit in found.results]


def is_current(skills: SkillInputs, line: RecalledLine) -> bool:
    """Return whether a stored line shows a part of a skill as the skill is now."""
    if line.skill_part is None:
        return False
    entry = skills.entries.get(line.id)
    if entry is None:
        return False
    match line.skill_part:
        case SkillPart.CATALOGUE:
            return line.line == blocks.skill_entry(entry)
        case SkillPart.SEE_ALSO:
            return line.line == blocks.skill_see_also(entry)
        case SkillPart.CONTENT:
            return line.version == entry.version


def possible_ids(inputs: ContextInputs) -> set[str]:
    """Return the skills of which a context may show a new part, however much of the replayed gives way."""
    return {line.id for line in [*new_lines(inputs), *new_lines(replace(inputs, turns=[]))]}


def new_lines(inputs: ContextInputs) -> list[RecalledLine]:
    """Return the parts of skills that no replayed turn shows: the catalogue first, then what matches."""
    skills = inputs.skills
    if not skills.entries:
        return []
    shown = {
        (line.skill_part, line.id)
        for turn in inputs.turns
        for line in turn.recalled_lines
        if is_current(skills, line)
    }
    return _lines_besides(skills, shown)


def _lines_besides(
    skills: SkillInputs, shown: Collection[tuple[SkillPart | None, str]]
) -> list[RecalledLine]:
    entries = list(skills.entries.values())
    listed = [
        RecalledLine(id=entry.id, line=blocks.skill_entry(entry), skill_part=SkillPart.CATALOGUE)
        for entry in entries[: skills.max_listed]
        if (SkillPart.CATALOGUE, entry.id) not in shown
    ]
    current = [skill for skill in skills.matching if _is_current_version(skills, skill)]
    new = [skill for skill in current if (SkillPart.CONTENT, skill.id) not in shown]
    contents = [
        RecalledLine(
            id=skill.id,
            line=blocks.skill_content(skill, skills.max_chars),
            skill_part=SkillPart.CONTENT,
            version=skill.version,
        )
        for skill in new
    ]
    whole = {id_ for part, id_ in shown if part is SkillPart.CONTENT} | {skill.id for skill in current}
    named = {name for skill in new for name in skill.see_also}
    related = [
        entry
        for entry in entries
        if entry.name in named and entry.id not in whole and (SkillPart.SEE_ALSO, entry.id) not in shown
    ]
    return [
        *listed,
        *contents,
        *(
            RecalledLine(id=entry.id, line=blocks.skill_see_also(entry), skill_part=SkillPart.SEE_ALSO)
            for entry in related
        ),
    ]


def _is_current_version(skills: SkillInputs, skill: Skill) -> bool:
    entry = skills.entries.get(skill.id)
    return entry is not None and entry.version == skill.version


def shorten(inputs: ContextInputs, kind: str) -> ContextInputs:
    """Return inputs with which a context shows less of skills; the same if there is nothing to leave out.

    Contents that older turns replay give way before those that match the message, and before any turn does.
    As turns do, they give way by a whole step of the window, so that contexts begin alike for longer.
    """
    if kind == BlockKind.SKILLS:
        shorter = _without_replayed(inputs, {SkillPart.CONTENT, SkillPart.SEE_ALSO})
        if shorter != inputs:
            return shorter
        return replace(inputs, skills=replace(inputs.skills, matching=inputs.skills.matching[:-1]))
    listed = min(inputs.skills.max_listed, len(inputs.skills.entries))
    if not listed:  # else the replayed lines would be new ones
        return _without_replayed(inputs, {SkillPart.CATALOGUE})
    max_listed = max(0, listed - _CATALOGUE_STEP)
    return replace(inputs, skills=replace(inputs.skills, max_listed=max_listed))


def _without_replayed(inputs: ContextInputs, parts: Collection[SkillPart]) -> ContextInputs:
    """Leave out some parts of skills from the oldest turns that show any, as many turns as are in a step."""
    shown_at = [index for index, turn in enumerate(inputs.turns) if _shows(turn, parts)]
    if not shown_at:
        return inputs
    until = shown_at[0] + inputs.window_step
    turns = [
        _without_parts(turn, parts) if index < until and _shows(turn, parts) else turn
        for index, turn in enumerate(inputs.turns)
    ]
    return replace(inputs, turns=turns)


def _shows(turn: Turn, parts: Collection[SkillPart]) -> bool:
    return any(line.skill_part in parts for line in turn.recalled_lines)


def _without_parts(turn: Turn, parts: Collection[SkillPart]) -> Turn:
    lines = [line for line in turn.recalled_lines if line.skill_part not in parts]
    return turn.model_copy(update={"recalled_lines": lines})


def without_changed(
    skills: SkillInputs, versions: Mapping[str, int], checked: Collection[str]
) -> SkillInputs:
    """Leave out the skills among `checked` that are not in the version in which they were read."""
    entries = {
        entry.id: entry
        for entry in skills.entries.values()
        if entry.id not in checked or versions.get(entry.id) == entry.version
    }
    return replace(skills, entries=entries)
