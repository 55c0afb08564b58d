"""Skills as they are sent, stored and returned by the API."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import errors, validation
from shared.foundation.origin import UNKNOWN, Origin
from shared.foundation.scope import Scope

MAX_NAME = 64
MAX_SUMMARY_WORDS = 15
MAX_SUMMARY = 200
MAX_CONTENT = 64_000
MAX_SEE_ALSO = 32
MAX_DESCRIPTION = 1024
"""Characters of the description in a SKILL.md."""
RESERVED_NAMES = frozenset({"search", "import", "proposals"})
"""Names of routes beside those of the skills."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
JsonObject = dict[str, Any]


class SkillWriter(StrEnum):
    """Who wrote the current version of a skill; the table calls it `origin`."""

    CALLER = "caller"
    IMPORT = "import"  # of a SKILL.md
    DREAM = "dream"  # a published proposal


class SummaryOrigin(StrEnum):
    """Where a summary comes from. One that no caller gave may be replaced by a better one."""

    CALLER = "caller"
    CONTENT = "content"  # the beginning of the content
    MODEL = "model"


class SkillFile(BaseModel):
    """A file of a skill. Its content is found by the SHA-256 of its bytes, in hexadecimal digits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    sha256: str
    size_bytes: int


class FrontMatter(BaseModel):
    """What a SKILL.md says of a skill besides its name, its content and Loci's own fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str | None = None
    license: str | None = None
    compatibility: str | None = None
    allowed_tools: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """Return what is said, without what is not."""
        return self.model_dump(exclude_defaults=True)


class SkillDraft(BaseModel):
    """A skill that is to be stored under a name. None keeps what stands there, or is left to the server."""

    model_config = ConfigDict(frozen=True)

    content: str
    summary: str | None = None
    summary_origin: SummaryOrigin = SummaryOrigin.CALLER
    see_also: tuple[str, ...] | None = None
    front_matter: FrontMatter | None = None
    files: tuple[SkillFile, ...] | None = None

    def validated(self) -> "SkillDraft":
        """Return the draft as it will be stored; raise errors.Invalid that names the field and the rule."""
        validation.check_text(self.content, "content", MAX_CONTENT)
        if self.summary is not None:
            check_summary(self.summary)
        if self.see_also is None:
            return self
        see_also = tuple(dict.fromkeys(self.see_also))
        if len(see_also) > MAX_SEE_ALSO:
            raise errors.TooLarge("see_also", f"must be at most {MAX_SEE_ALSO} names")
        for position, name in enumerate(see_also):
            check_name(name, f"see_also.{position}")
        return self.model_copy(update={"see_also": see_also})


class SearchableSkill(NamedTuple):
    """What search knows of a skill."""

    id: str
    name: str
    summary: str
    description: str | None

    @property
    def text(self) -> str:
        """What search matches."""
        return "\n".join(filter(None, (self.name.replace("-", " "), self.summary, self.description)))


class SkillInfo(BaseModel):
    """A skill without its content, as lists and searches return it. The version is its ETag."""

    model_config = ConfigDict(frozen=True)

    name: str
    summary: str
    summary_origin: SummaryOrigin
    see_also: list[str]
    front_matter: FrontMatter
    files: list[SkillFile]
    agent_id: str
    user_id: str | None
    written_by: SkillWriter
    origin: Origin = UNKNOWN
    version: int
    created_at: datetime
    updated_at: datetime | None
    last_used_at: datetime | None
    id: str = Field(exclude=True)
    tenant: str = Field(exclude=True)

    @property
    def scope(self) -> Scope:
        """The scope that the skill belongs to."""
        return Scope(self.tenant, self.agent_id, self.user_id)


class Skill(SkillInfo):
    """A skill as stored in Postgres."""

    content: str

    @property
    def searchable(self) -> SearchableSkill:
        """What search knows of it."""
        return SearchableSkill(self.id, self.name, self.summary, self.front_matter.description)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Skill":
        """Read a skill from a row of `skill`."""
        fields: dict[str, Any] = {**row}
        return cls.model_validate(fields | {"written_by": row["origin"], "origin": Origin.from_row(fields)})

    @classmethod
    def from_json(cls, fields: JsonObject, tenant: str) -> "Skill":
        """Read a skill from what `to_json` has returned, also when it called the writer `origin`."""
        if "written_by" not in fields:
            fields = {**fields, "written_by": fields["origin"], "origin": UNKNOWN}
        return cls.model_validate(fields | {"id": "", "tenant": tenant})

    def to_json(self, *, with_content: bool = True) -> JsonObject:
        """Return the skill as the API does, with its content or without."""
        return self.model_dump(mode="json", exclude=set() if with_content else {"content"})


class SkillVersion(BaseModel):
    """What a skill was, or is, in one version."""

    model_config = ConfigDict(frozen=True)

    version: int
    summary: str
    content: str
    see_also: list[str]
    front_matter: FrontMatter
    files: list[SkillFile]
    written_by: SkillWriter
    created_at: datetime

    @classmethod
    def from_row(cls, row: RowMapping) -> "SkillVersion":
        """Read a version from a row of `skill_version`."""
        return cls.model_validate({**row, "written_by": row["origin"]})


class CatalogueEntry(NamedTuple):
    """What the catalogue of a scope says of a skill."""

    id: str
    name: str
    summary: str
    version: int
    description: str | None = None

    @property
    def searchable(self) -> SearchableSkill:
        """What search knows of the skill."""
        return SearchableSkill(self.id, self.name, self.summary, self.description)


def check_name(name: str, field: str = "name") -> str:
    """Return the name of a skill: lower-case ASCII letters and digits, in parts joined by single hyphens."""
    if len(name) > MAX_NAME:
        raise errors.Invalid(field, f"must be at most {MAX_NAME} characters")
    if _NAME.fullmatch(name) is None:
        raise errors.Invalid(field, "must be lower-case letters and digits, in parts joined by single '-'")
    if name in RESERVED_NAMES:
        raise errors.Invalid(field, f"must not be one of {', '.join(sorted(RESERVED_NAMES))}")
    return name


def check_summary(summary: str) -> str:
    """Return a summary: one line of at most 15 words."""
    validation.check_single_line(summary, "summary", MAX_SUMMARY)
    if len(summary.split()) > MAX_SUMMARY_WORDS:
        raise errors.Invalid("summary", f"must be at most {MAX_SUMMARY_WORDS} words")
    return summary


def beginning_of(text: str) -> str:
    """Return the first words of the first line that has any, as a summary. Markdown marks are left out."""
    for line in text.splitlines():
        words = line.strip().strip("#*_->`").split()
        printable = ["".join(filter(str.isprintable, word)) for word in words]
        if any(map(str.isalnum, "".join(printable))):
            return " ".join(filter(None, printable[:MAX_SUMMARY_WORDS]))[:MAX_SUMMARY].strip()
    return "…"
