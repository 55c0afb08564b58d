"""The base of every request body: unknown fields and text that the databases can't store are refused."""

from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator

from shared.foundation import errors

_UNSTORABLE = "must not contain NUL or lone surrogates"


class ApiModel(BaseModel):
    """A JSON object of the API."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _require_storable(cls, data: Any) -> Any:
        if not _is_storable(data):
            raise ValueError(_UNSTORABLE)
        return data


class BatchApiModel(ApiModel):
    """Items that `parse` reads, each on its own. Only the keys of the whole are checked here."""

    @model_validator(mode="before")
    @classmethod
    def _require_storable(cls, data: Any) -> Any:
        if not _is_storable([*data] if isinstance(data, dict) else data):
            raise ValueError(_UNSTORABLE)
        return data


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
