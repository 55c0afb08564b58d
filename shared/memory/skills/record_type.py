"""What skills are as a kind of record."""

from collections.abc import Mapping
from typing import Any

from shared.foundation.content import Subject
from shared.foundation.stages import RecordKind
from shared.memory.skills import index_document
from shared.memory.skills.skill import SearchableSkill, Skill
from shared.memory.skills.table import skill
from shared.records.record_type import RecordType


def _search_text(columns: Mapping[str, Any]) -> str:
    description = columns["front_matter"].get("description")
    return SearchableSkill("", columns["name"], columns["summary"], description).text


SKILL = RecordType(
    kind=RecordKind.SKILL,
    table=skill,
    from_row=Skill.from_row,
    search_text=_search_text,
    document=index_document.document,
    subjects=(Subject.SKILL, Subject.USER, Subject.AGENT),
)
