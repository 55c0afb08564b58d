"""The settings of skills: how many there may be, and how much of them a context shows."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class SkillSettings(BaseSettings):
    """The part of the settings that is about skills."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(use_attribute_docstrings=True)

    skill_max_per_scope: int = Field(500, ge=1)
    """The most skills of an agent, and of each of its users. The next new one is refused."""
    skill_max_versions: int = Field(20, ge=1)
    """The newest versions of a skill that are kept, the current one among them."""
    context_max_skills: int = Field(5, ge=0, le=100)
    """The most skills that a context shows because they match the message. 0 shows none."""
    context_max_skill_chars: int = Field(6000, ge=0)
    """A context shows a skill whole if its content has at most so many characters. Of a longer one it shows
    the summary and says how to read it."""
    context_max_skill_catalogue: int = Field(100, ge=0)
    """The most skills whose names and summaries a context lists. 0 lists none."""
    skill_publish_proposals: bool = False
    """Whether what a dream proposes about skills is published at once. Otherwise it waits for somebody who
    may write the skills of that scope."""
    retention_skill_use_days: float = Field(90, gt=0)
    """How long it is kept in which session a skill was used."""
