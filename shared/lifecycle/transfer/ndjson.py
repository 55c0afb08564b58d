"""A line of NDJSON: one memory, as an export writes it and an import reads it.

Parsing is lenient about names and strict about values. Keys may be those of Loci or of RockBot
(camelCase, `importanceScore`); unknown keys are ignored. A value that can't be stored unchanged makes
the whole line malformed. Fields that a line does not name keep their present value in an import.

RockBot hides memories that it superseded without always recording when. Such a memory is imported as
archived at its last known time; otherwise it would return as a live one.

A reference (`superseded_by`, `derived_from`) may be any id, because its target may be deleted.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
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
    PrivateAttr,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from shared.foundation import errors, validation
from shared.foundation.json_value_count import ValueCounter
from shared.foundation.origin import Origin
from shared.foundation.stages import MemoryState
from shared.memory.longterm.memory import (
    MAX_REINFORCEMENT_COUNT,
    Archiver,
    DecidedBy,
    Memory,
    MemoryDraft,
    Source,
    check_name,
    check_source,
)
from shared.verification.claim import Verdict

# The longest memory that can be stored, with every character escaped, has about half of this.
MAX_BYTES = 1024 * 1024
MAX_VALUES = 65_536
"""JSON values of a line of a memory, an entity or a triple: many times what one can have."""
MAX_REFERENCES = 1000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIRST_YEAR, _LAST_YEAR = 2, 9998
LAST_MOMENT = datetime(_LAST_YEAR, 12, 31, tzinfo=UTC)
# RockBot writes null for an absent value. In these fields null means the same as leaving them out.
_NEVER_NULL = (
    *("tags", "metadata", "importance", "importanceScore", "state", "sources", "created_at", "createdAt"),
    *("last_seen_at", "lastSeenAt", "reinforcement_count", "reinforcementCount"),
    *("superseded_by", "supersededBy", "derived_from", "derivedFrom", "contested_with", "contestedWith"),
)


def _require_text(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("must be a time as text")  # noqa: TRY004  (pydantic reads ValueError)
    return value


def _to_utc(moment: datetime) -> datetime:
    # The driver reads the first and the last possible time as infinity and returns another time, and close
    # to them a change of time zone overflows.
    try:
        utc = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (OverflowError, ValueError):
        utc = datetime.max.replace(tzinfo=UTC)
    if not _FIRST_YEAR <= utc.year <= _LAST_YEAR:
        raise ValueError(f"must lie within the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return utc


def _to_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Moment = Annotated[datetime, BeforeValidator(_require_text), AfterValidator(_to_utc)]
M = TypeVar("M", bound=BaseModel)
References = Annotated[list[str], BeforeValidator(_to_list), Field(max_length=MAX_REFERENCES)]


class MemoryLine(BaseModel):
    """One memory as a line has it. `model_fields_set` has the fields that the line names."""

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
    # Export files of earlier development versions call it `failure`.
    failure_reason: str | None = Field(
        None, validation_alias=AliasChoices("failure_reason", "failureReason", "failure")
    )
    occurred_at: Moment | None = None
    sources: list[Source] = []
    created_at: Moment | None = None
    updated_at: Moment | None = None
    last_seen_at: Moment | None = None
    reinforcement_count: Annotated[int, Strict(), Field(ge=1, le=MAX_REINFORCEMENT_COUNT)] = 1
    superseded_by: References = []
    derived_from: References = []
    archived_at: Moment | None = None
    archive_reason: str | None = None
    archived_by: Archiver | None = None
    namespace: str = ""
    key: str | None = None
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    expires_at: Moment | None = None
    saved_without_source: Annotated[bool, Strict()] = False
    decided_by: DecidedBy | None = None
    verdict: Verdict | None = None
    judge_model: str | None = None
    contested_with: References = []
    # What is imported is as far trusted as it was where it comes from, and at most as the key that imports.
    origin: Origin | None = None

    _number: int = PrivateAttr(default=0)

    @property
    def number(self) -> int:
        """The number of the line in what was uploaded, from 1; 0 if it is not known."""
        return self._number

    @property
    def references(self) -> list[str]:
        """The ids of other memories that the line names."""
        return [*self.superseded_by, *self.derived_from, *self.contested_with]

    def numbered(self, number: int) -> "MemoryLine":
        """Return the line with its number."""
        copy = self.model_copy()
        copy._number = number  # noqa: SLF001  (a line of this class)
        return copy

    def with_sessions(self, ids: Mapping[str, str]) -> "MemoryLine":
        """Return the line with other session ids in its sources; `ids` maps the ids of the line."""
        sources = [
            source.model_copy(update={"session_id": ids.get(source.session_id, source.session_id)})
            for source in self.sources
        ]
        return self.model_copy(update={"sources": sources}) if sources else self

    @model_validator(mode="before")
    @classmethod
    def _normalize_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            raise ValueError("must be a JSON object")  # noqa: TRY004  (pydantic reads ValueError)
        fields = {key: value for key, value in data.items() if value is not None or key not in _NEVER_NULL}
        if "sources" not in fields and fields.get("source") is not None:
            fields["sources"] = [fields["source"]]
        return _with_archived_at(fields) if "supersededBy" in fields else fields


def _with_archived_at(fields: dict[str, Any]) -> dict[str, Any]:
    """Add the time of archiving to the fields of a RockBot memory that was superseded."""
    times = [fields.get(key) for key in ("archivedAt", "updatedAt", "lastSeenAt", "createdAt")]
    last_known = next((time for time in times if time is not None), None)
    return fields | {"archivedAt": last_known} if fields["supersededBy"] else fields


def numbered_lines(raw_lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, each with its number from 1, and none with a byte order mark."""
    for number, line in enumerate(raw_lines, start=1):
        raw = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        if raw.strip():
            yield number, raw


def parse_line(raw: bytes) -> MemoryLine:
    """Parse a line. Raises errors.Invalid, naming the field and the rule."""
    if len(raw) > MAX_BYTES:
        raise errors.TooLarge("line", f"must be at most {MAX_BYTES} bytes")
    check_value_count(raw)
    line = parse_object(MemoryLine, raw)
    _check_values(line)
    _check_key_and_times(line)
    aligned = _align_state(line)
    if aligned.archived_by is not None and aligned.archived_at is None:
        raise errors.Invalid("archived_by", "must be given with archived_at only")
    return aligned


def check_value_count(raw: bytes) -> None:
    """Raise errors.TooLarge for a line of many values: thirty of them would stop a gateway for seconds."""
    counter = ValueCounter()
    counter.add(raw)
    if counter.count > MAX_VALUES:
        raise errors.TooLarge("line", f"must have at most {MAX_VALUES} JSON values")


def parse_object(model: type[M], raw: bytes) -> M:
    """Parse a JSON object. Raises errors.Invalid, naming the first fault but never the content."""
    try:
        return model.model_validate(_load(raw))
    except ValidationError as error:
        raise invalid_field(error) from None


def load_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object of any fields. Raises errors.Invalid for anything else."""
    try:
        payload = _load(raw)
    except errors.Invalid as error:
        payload = _load_any_number(raw, error)
    if not isinstance(payload, dict):
        raise errors.Invalid("line", "must be a JSON object")
    return payload


def _load(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise errors.Invalid("line", f"is not JSON: {error.msg}") from None


def _load_any_number(raw: bytes, error: errors.Invalid) -> Any:
    """Parse JSON with a number that no float holds, such as 1e400; raise the error for what is not JSON."""

    def refuse(_: str) -> None:
        raise ValueError

    try:
        return json.loads(raw, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise error from None


def invalid_field(error: ValidationError) -> errors.Invalid:
    """Return the first fault of a line, with its field and the rule but never the content."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "line"
    return errors.Invalid(field, first["msg"].removeprefix("Value error, "))


def _check_values(line: MemoryLine) -> None:
    validation.check_text(line.id, "id", validation.MAX_IDENTIFIER_LENGTH)
    fields = line.model_dump(include={"content", "category", "tags", "metadata"})
    MemoryDraft.model_validate(fields).validated()
    for position, source in enumerate(line.sources):
        check_source(source, f"sources.{position}")
    for field in ("superseded_by", "derived_from", "contested_with"):
        for position, reference in enumerate(getattr(line, field)):
            validation.check_text(reference, f"{field}.{position}", validation.MAX_IDENTIFIER_LENGTH)
    for field in ("failure_reason", "archive_reason", "judge_model"):
        if (reason := getattr(line, field)) is not None:
            validation.check_text(reason, field, allow_blank=True)


def _check_key_and_times(line: MemoryLine) -> None:
    check_name(line.namespace, line.key)
    if line.valid_from and line.valid_until and line.valid_from > line.valid_until:
        raise errors.Invalid("valid_until", "must not be before valid_from")
    if line.expires_at is not None:  # otherwise the next sweep would delete it
        validation.check_future(line.expires_at, "expires_at")
    if line.key is not None and line.state is MemoryState.PENDING:
        raise errors.Invalid("state", "must not be 'pending' with a key: its text is kept as it was written")


def _align_state(line: MemoryLine) -> MemoryLine:
    """Make `state` and `archived_at` agree. Raises errors.Invalid if the line names both and they differ."""
    if "state" not in line.model_fields_set:
        archived = {"state": MemoryState.ARCHIVED} if line.archived_at is not None else {}
        return line.model_copy(update=archived)
    if (line.state is MemoryState.ARCHIVED) != (line.archived_at is not None):
        raise errors.Invalid("archived_at", "must be given with the state 'archived', and with no other")
    return line.model_copy(update={"archived_at": line.archived_at})


def write_line(memory: Memory) -> bytes:
    """Return a memory as a line, with its line break."""
    fields = memory.model_dump(mode="json", exclude={"source", "effective_importance", "version"})
    # Callers don't see it, but a deletion of the memory's source has to know.
    if memory.saved_without_source:
        fields["saved_without_source"] = True
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
