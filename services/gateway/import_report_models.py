"""The reports of imports."""

from pydantic import Field

from services.gateway.api_model import ApiModel


class DuplicateLine(ApiModel):
    """A line that says what another memory says."""

    id: str
    of: str


class MalformedLine(ApiModel):
    """A line that can't be read, by its number, and the rule that it breaks."""

    line: int
    rule: str


class RefusedLine(MalformedLine):
    """A line that could be read but not stored."""

    kind: str


class MemoryImportReport(ApiModel):
    """What became of the lines of an import. `remapped` has the new ids of what has another id here."""

    created: int
    updated: int
    skipped: int
    remapped: dict[str, str]
    tombstoned: list[str] = Field(
        description="Ids of memories, and keys or ids of other records, that were deleted on purpose."
    )
    duplicates: list[DuplicateLine]
    malformed: list[MalformedLine]


class KindImportReport(ApiModel):
    """What became of the lines of one kind. `kept` names rows that exist with another content.

    `tombstoned` names those that were deleted on purpose.
    """

    created: int
    updated: int
    skipped: int
    kept: list[str]
    remapped: dict[str, str]
    tombstoned: list[str]


class ScopeImportReport(MemoryImportReport):
    """What became of the lines of an import, over all kinds and by kind."""

    refused: list[RefusedLine]
    kinds: dict[str, KindImportReport]
