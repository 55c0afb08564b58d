"""What every request body has in common: no unknown fields, no text that a store can't hold."""

from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator

from shared.foundation import errors

_UNSTORABLE = "must not contain NUL or lone surrogates"


class ApiModel(BaseModel):
    """A JSON object of the contract."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _storable(cls, data: Any) -> Any:
        if not _is_storable(data):
            raise ValueError(_UNSTORABLE)
        return data


class BatchApiModel(ApiModel):
    """A list of items that stand on their own: what one of them holds is judged when it is parsed."""

    @model_validator(mode="before")
    @classmethod
    def _storable(cls, data: Any) -> Any:
        if not _is_storable([*data] if isinstance(data, dict) else data):
            raise ValueError(_UNSTORABLE)
        return data


def example(body: dict[str, Any]) -> ConfigDict:
    """Return the configuration that shows an example in the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [body]})


def _is_storable(data: Any) -> bool:
    waiting = [data]  # not recursive: JSON nests deeper than Python's stack
    while waiting:
        item = waiting.pop()
        if isinstance(item, str) and ("\x00" in item or not (item.isascii() or _encodes(item))):
            return False
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list):
            waiting += item
    return True


def _encodes(text: str) -> bool:
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


def parse(model: type[M], item: Any) -> M:
    """Read one item of a batch; raise errors.Invalid naming its first fault."""
    try:
        return model.model_validate(item)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in fault["loc"]) or "body"
        raise errors.Invalid(field, fault["msg"].removeprefix("Value error, ")) from None
