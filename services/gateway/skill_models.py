"""The bodies of requests and responses on skills."""

from typing import Annotated

from pydantic import Field

from services.gateway.api_model import ApiModel, Count, RequestedTrust, example
from shared.memory.skills.skill import SkillDraft, SkillInfo


class SkillBody(ApiModel):
    """A skill. Without `see_also` the names that stand there stay; without `summary`, one is made."""

    model_config = example(
        {
            "content": "# Refunds\n\nLook the order up first, then ask for the reason.",
            "summary": "How to refund an order, and when not to.",
            "see_also": ["order-look-up"],
        }
    )

    content: Annotated[str, Field(description="Markdown of at most 64 000 characters.")]
    summary: Annotated[str | None, Field(description="At most 15 words.")] = None
    see_also: list[str] | None = None
    trust: RequestedTrust = None
    agent_id: str | None = None
    user_id: str | None = None

    def draft(self) -> SkillDraft:
        """Return the skill to store. Raise errors.Invalid if it breaks a rule."""
        see_also = None if self.see_also is None else tuple(self.see_also)
        return SkillDraft(content=self.content, summary=self.summary, see_also=see_also).validated()


class SkillSearchBody(ApiModel):
    """A search in names, summaries and descriptions."""

    model_config = example({"query": "The customer wants the money back.", "limit": 5})

    query: Annotated[str, Field(min_length=1, max_length=16_000)]
    limit: Annotated[Count, Field(ge=1, le=100)] = 5
    agent_id: str | None = None
    user_id: str | None = None


class SkillHit(SkillInfo):
    """A skill that a search found, and its score."""

    score: float


class FoundSkills(ApiModel):
    """The skills that a search found, best first; what ran, and what was missing."""

    results: list[SkillHit]
    stages: list[str]
    degraded: list[str]


class ImportedSkill(ApiModel):
    """A skill that was imported, and what was understood differently than it was written, or not at all."""

    name: str
    version: int
    created: bool
    warnings: list[str]


class ImportedSkills(ApiModel):
    """The skills of an archive, by name."""

    results: list[ImportedSkill]


class DeletedSkill(ApiModel):
    """Whether there was a skill of this name."""

    name: str
    deleted: Annotated[bool, Field(strict=True)]
