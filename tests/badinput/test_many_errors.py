"""A body may break as many rules as it has values: few are described, because each takes its time."""

from typing import Any

import pytest
from pydantic import ValidationError

from services.gateway.api_model import MAX_VIOLATIONS, ApiModel
from services.gateway.app import create_app
from services.gateway.memory_models import MemoryBody
from services.gateway.routes.playbooks import PlaybookBody
from shared.foundation import errors
from tests.badinput import problem
from tests.badinput.conftest import CheckedGateway

MANY = 2000


def _subclasses(model: type[ApiModel]) -> list[type[ApiModel]]:
    return [model, *(below for child in model.__subclasses__() for below in _subclasses(child))]


create_app()
MODELS = sorted(set(_subclasses(ApiModel)), key=lambda model: f"{model.__module__}.{model.__qualname__}")
VALUES: list[Any] = [[None] * MANY, {str(number): None for number in range(MANY)}]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__qualname__)
def test_no_body_has_many_more_errors_than_are_named(model: type[ApiModel]) -> None:
    fields = [field.alias or name for name, field in model.model_fields.items()]
    bodies = [{name: value} for name in fields for value in VALUES]
    bodies += [{str(number): 1 for number in range(MANY)}, dict.fromkeys(fields, VALUES[0])]
    assert all(_count_errors(model, body) <= 10 * MAX_VIOLATIONS < MANY for body in bodies)


def _count_errors(model: type[ApiModel], body: Any) -> int:
    try:
        model.model_validate(body)
    except ValidationError as error:
        return error.error_count()
    except errors.Invalid:  # by what checks a filter
        return 1
    return 0


def test_the_first_broken_rules_are_those_of_the_body() -> None:
    source = {"colour": 1, "session_id": "s"}
    body = {str(number): 1 for number in range(MANY)} | {"source": source, "tags": [1] * MANY, "content": "x"}
    with pytest.raises(ValidationError) as raised:
        MemoryBody.model_validate(body)
    fields = {error["loc"] for error in raised.value.errors()}
    assert {("0",), ("tags", 0), ("source", "colour")} <= fields
    assert not fields & {("content",), ("source", "session_id")}, "they are as they are to be"


def test_rules_that_only_later_items_break_are_counted() -> None:
    with pytest.raises(ValidationError, match="breaks more than 100 rules"):
        MemoryBody.model_validate({"content": "x", "tags": ["a"] * MAX_VIOLATIONS + [1] * MANY})


def test_of_a_list_of_objects_the_first_error_is_enough() -> None:
    with pytest.raises(ValidationError) as raised:
        PlaybookBody.model_validate({"tool_calls": [1] * MANY})
    calls = [error["loc"] for error in raised.value.errors() if error["loc"][0] == "tool_calls"]
    assert calls == [("tool_calls", 0)]


async def test_a_body_of_wrong_values_is_a_422_that_names_some(gateway: CheckedGateway) -> None:
    async with gateway.unchanged():
        response = await gateway.send("POST", "/v1/memories", {"content": "x", "tags": [1] * 100_000})
    assert problem.names_violation(response, "tags.0", "string")
    assert len(response.json()["errors"]) <= MAX_VIOLATIONS
