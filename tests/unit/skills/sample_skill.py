"""A skill, with the fields of a test."""

from datetime import UTC, datetime
from typing import Any

from shared.memory.skills.skill import FrontMatter, Skill, SkillWriter, SummaryOrigin

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def skill(**fields: Any) -> Skill:
    known: dict[str, Any] = {
        "id": "1",
        "tenant": "t",
        "agent_id": "a",
        "user_id": None,
        "name": "bake-bread",
        "summary": "How to bake bread.",
        "summary_origin": SummaryOrigin.CALLER,
        "content": "# Bread\n\nKnead.",
        "see_also": [],
        "front_matter": FrontMatter(),
        "files": [],
        "written_by": SkillWriter.CALLER,
        "version": 1,
        "created_at": NOW,
        "updated_at": None,
        "last_used_at": None,
    }
    return Skill.model_validate(known | fields)
