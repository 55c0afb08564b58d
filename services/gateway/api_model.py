"""The base of every request body: unknown fields and text that the databases can't store are refused."""

from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    Strict,
    ValidationError,
    model_validator,
)

from shared.foundation import errors
from shared.foundation.origin import Trust

MAX_VIOLATIONS = 100
"""So many broken rules of a body are named: it may break as many as it has values."""
_UNSTORABLE = "must not contain NUL or lone surrogates"


class ApiModel(BaseModel):
    """A JSON object of the API."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not _is_storable(cls._to_store(data)):
            raise ValueError(_UNSTORABLE)
        try:
            return handler(data)
        except ValidationError as error:
            if error.error_count() <= MAX_VIOLATIONS:
                raise
        # An error describes each broken rule when it is read, and half a million take seconds.
        fields = cls.model_fields.items()
        handler(_first_items(data, {field.alias or name for name, field in fields}))
        raise ValueError(f"breaks more than {MAX_VIOLATIONS} rules")

    @classmethod
    def _to_store(cls, data: Any) -> Any:
        """Return what is checked here of the data: whether the databases can store it."""
        return data


class BatchApiModel(ApiModel):
    """Items that `parse` reads, each on its own. Only the keys of the whole are checked here."""

    @classmethod
    def _to_store(cls, data: Any) -> Any:
        return [*data] if isinstance(data, dict) else data


def _first_items(data: Any, names: AbstractSet[str]) -> Any:
    """Return a copy of an object with the fields of these names and a few others, each cut if it is long."""
    if not isinstance(data, dict):
        return data
    others = islice((key for key in data if key not in names), MAX_VIOLATIONS)
    return {key: _cut(data[key]) for key in (*(name for name in names if name in data), *others)}


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(islice(value.items(), MAX_VIOLATIONS))
    return value[:MAX_VIOLATIONS] if isinstance(value, list) else value


def example(body: dict[str, Any]) -> ConfigDict:
    """Return the configuration that shows an example in the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [body]})


def _is_storable(data: Any) -> bool:
    pending_items = [data]  # not recursive: JSON can nest deeper than Python's call stack
    while pending_items:
        item = pending_items.pop()
        if isinstance(item, str) and ("\x00" in item or not (item.isascii() or _is_utf8_text(item))):
            return False
        if isinstance(item, dict):
            pending_items += [*item, *item.values()]
        elif isinstance(item, list):
            pending_items += item
    return True


def _is_utf8_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


UnitInterval = Annotated[float, Field(ge=0, le=1), Strict()]
Flag = Annotated[bool, Strict()]
Count = Annotated[int, Strict()]
Seconds = Annotated[float, Field(gt=0), Strict()]
RequestedTrust = Annotated[
    Trust | None,
    Field(description="Lowers the trust that the server gives: operator, agent, user or outside."),
]

M = TypeVar("M", bound=ApiModel)


def parse(model: type[M], item: Any, name: str = "body") -> M:
    """Parse one item of a batch. Raise errors.Invalid with the first rule that it breaks.

    `name` is that of the item as a whole, for a rule that is about none of its fields.
    """
    try:
        return model.model_validate(item)
    except ValidationError as error:
        violation = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in violation["loc"]) or name
        raise errors.Invalid(field, violation["msg"].removeprefix("Value error, ")) from None
