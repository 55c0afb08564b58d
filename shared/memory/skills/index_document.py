"""Skills as index documents and ranking candidates: a skill is found by its name, summary and description."""

from shared.foundation.stages import RecordKind
from shared.memory.skills.skill import SearchableSkill, Skill
from shared.search.index.filters import NO_USER
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text


def document(skill: Skill) -> IndexDocument:
    """Return the index document of a skill."""
    filters = {"agent_id": skill.agent_id, "user_id": skill.user_id or NO_USER}
    return IndexDocument(
        skill.tenant,
        RecordKind.SKILL,
        skill.id,
        skill.version,
        keyword_text(skill.searchable),
        embedding_text(skill.searchable),
        filters,
    )


def keyword_text(skill: SearchableSkill) -> str:
    """Return the text that keyword search matches."""
    return indexed_text.keyword_text(skill.text)


def embedding_text(skill: SearchableSkill) -> str:
    """Return the text that is embedded."""
    return indexed_text.embedding_text(skill.text)


def candidate(skill: SearchableSkill, keyword: float | None, cosine: float | None) -> Candidate:
    """Return a skill as a candidate for ranking."""
    return Candidate(skill.id, keyword_text(skill), keyword, cosine, said=skill.summary)
