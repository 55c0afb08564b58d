"""A line: one entry as export writes it and import reads it.

Reading is generous about names and strict about values. Keys may be ours or RockBot's (camelCase,
`importanceScore`); unknown keys say nothing. A value that we could not store unchanged makes the
whole line malformed: better reported than bent. What a line does not name, an import leaves as it is.

RockBot hides what it superseded without always saying when; such an entry is read as archived at
the last time that it was touched, or it would come back as something still believed.

A reference (`superseded_by`, `derived_from`) is any id at all: what it points at may have gone.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from shared.foundation import errors, validation
from shared.foundation.stages import MemoryState
from shared.memory.longterm.memory import Memory, MemoryDraft, Source

# The longest entry that can be stored, escaped at its worst, has about half of it.
MAX_BYTES = 1024 * 1024
MAX_REFERENCES = 1000
_MAX_INTEGER = 2**31 - 1
_FIRST_YEAR, _LAST_YEAR = 2, 9998
# RockBot writes null where it has nothing; in these fields that is the same as not naming them.
_NEVER_NULL = (
    *("tags", "metadata", "importance", "importanceScore", "state", "sources", "created_at", "createdAt"),
    *("last_seen_at", "lastSeenAt", "reinforcement_count", "reinforcementCount"),
    *("superseded_by", "supersededBy", "derived_from", "derivedFrom"),
)


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("must be a time as text")  # noqa: TRY004  (pydantic reads ValueError)
    return value


def _utc(moment: datetime) -> datetime:
    # The first and the last moment there are mean "for ever" to the driver and come back as another,
    # and beside them a change of time zone has nowhere to go.
    try:
        told = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (OverflowError, ValueError):
        told = datetime.max.replace(tzinfo=UTC)
    if not _FIRST_YEAR <= told.year <= _LAST_YEAR:
        raise ValueError(f"must lie within the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return told


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Moment = Annotated[datetime, BeforeValidator(_text), AfterValidator(_utc)]
M = TypeVar("M", bound=BaseModel)
References = Annotated[list[str], BeforeValidator(_listed), Field(max_length=MAX_REFERENCES)]


class MemoryLine(BaseModel):
    """One entry as a line tells it. `model_fields_set` says what it names."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(name, to_camel(name))),
    )

    id: str
    content: str
    category: str | None = None
    tags: list[str] = []
    metadata: dict[str, str] = {}
    importance: Annotated[float, Strict(), Field(ge=0, le=1)] = Field(
        0.5, validation_alias=AliasChoices("importance", "importanceScore")
    )
    state: MemoryState = MemoryState.FINAL
    # `failure` was its name in the export files of earlier development versions.
    failure_reason: str | None = Field(
        None, validation_alias=AliasChoices("failure_reason", "failureReason", "failure")
    )
    occurred_at: Moment | None = None
    sources: list[Source] = []
    created_at: Moment | None = None
    updated_at: Moment | None = None
    last_seen_at: Moment | None = None
    reinforcement_count: Annotated[int, Strict(), Field(ge=1, le=_MAX_INTEGER)] = 1
    superseded_by: References = []
    derived_from: References = []
    archived_at: Moment | None = None
    archive_reason: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            raise ValueError("must be a JSON object")  # noqa: TRY004  (pydantic reads ValueError)
        named = {key: value for key, value in data.items() if value is not None or key not in _NEVER_NULL}
        if "sources" not in named and named.get("source") is not None:
            named["sources"] = [named["source"]]
        return _superseded(named) if "supersededBy" in named else named


def _superseded(named: dict[str, Any]) -> dict[str, Any]:
    touched = [named.get(key) for key in ("archivedAt", "updatedAt", "lastSeenAt", "createdAt")]
    last = next((moment for moment in touched if moment is not None), None)
    return named | {"archivedAt": last} if named["supersededBy"] else named


def parse_line(raw: bytes) -> MemoryLine:
    """Read a line; raise errors.Invalid naming the field and the rule."""
    if len(raw) > MAX_BYTES:
        raise errors.TooLarge("line", f"must be at most {MAX_BYTES} bytes")
    line = parsed(MemoryLine, raw)
    _check(line)
    return _settled(line)


def parsed(model: type[M], raw: bytes) -> M:
    """Read a JSON object; raise errors.Invalid naming its first fault, never what it says."""
    try:
        return model.model_validate(orjson.loads(raw))
    except orjson.JSONDecodeError as error:
        raise errors.Invalid("line", f"is not JSON: {error.msg}") from None
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in fault["loc"]) or "line"
        raise errors.Invalid(field, fault["msg"].removeprefix("Value error, ")) from None


def _check(line: MemoryLine) -> None:
    validation.check_text(line.id, "id", validation.MAX_IDENTIFIER_LENGTH)
    told = line.model_dump(include={"content", "category", "tags", "metadata"})
    MemoryDraft.model_validate(told).validated()
    for place, source in enumerate(line.sources):
        _check_source(source, f"sources.{place}")
    for field in ("superseded_by", "derived_from"):
        for place, reference in enumerate(getattr(line, field)):
            validation.check_text(reference, f"{field}.{place}", validation.MAX_IDENTIFIER_LENGTH)
    for field in ("failure_reason", "archive_reason"):
        if (reason := getattr(line, field)) is not None:
            validation.check_text(reason, field, allow_blank=True)


def _check_source(source: Source, field: str) -> None:
    validation.check_identifier(source.session_id, f"{field}.session_id")
    for name in ("speaker", "role"):
        if (value := getattr(source, name)) is not None:
            validation.check_text(value, f"{field}.{name}", 128)


def _settled(line: MemoryLine) -> MemoryLine:
    """Make state and archiving agree: an entry is archived from a moment on, or it is not."""
    named = line.model_fields_set
    if "state" not in named:
        archived = {"state": MemoryState.ARCHIVED} if line.archived_at is not None else {}
        return line.model_copy(update=archived)
    if (line.state is MemoryState.ARCHIVED) != (line.archived_at is not None):
        raise errors.Invalid("archived_at", "must be given with the state 'archived', and with no other")
    return line.model_copy(update={"archived_at": line.archived_at})


def write_line(entry: Memory) -> bytes:
    """Return an entry as a line, with its line break."""
    return entry.model_dump_json(exclude={"source", "effective_importance"}).encode() + b"\n"
