"""MO5: a reply is asked for in a shape where the endpoint takes one, and without it where it does not."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shared.dreams.passes import facts, reply_schemas
from shared.foundation import config, errors
from shared.foundation.reply_schema import TEXT, array_of, object_of
from shared.infra.language_model import LanguageModel, open_language_model
from tests.standins.behaviours import Reply, Status, Truncated
from tests.standins.models import ModelServer
from tests.standins.wire import Call, Wire
from workers.dream import (
    anti_patterns,
    consolidate,
    consolidate_graph,
    episodes,
    extract_entities,
    preferences,
    session_evaluation,
    skill_gaps,
    skill_revision,
)
from workers.enrichment import prompt

SCHEMA = object_of(memories=array_of(TEXT))


@pytest.fixture
async def model(models: ModelServer) -> AsyncIterator[LanguageModel]:
    opened = open_model(models)
    yield opened
    await opened.close()


def open_model(models: ModelServer) -> LanguageModel:
    opened = open_language_model(config.load(llm_base_url=models.url, llm_model="m"))
    assert opened is not None
    return opened


class WithoutSchemas:
    """An endpoint that refuses requests with a schema."""

    def __init__(self, code: int) -> None:
        self.code = code

    def play(self, call: Call, wire: Wire) -> None:
        """Refuse a request with a schema, and answer others."""
        (Status(self.code) if "response_format" in call.body else Reply("[]")).play(call, wire)


def formats(models: ModelServer) -> list[Any]:
    return [call.body.get("response_format") for call in models.chat_calls]


async def test_a_schema_is_sent(model: LanguageModel, models: ModelServer) -> None:
    await model.complete("rules", "note", SCHEMA)
    expected = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}}
    assert formats(models) == [expected]


@pytest.mark.parametrize("code", [400, 415, 422])
async def test_an_endpoint_that_refuses_a_schema_is_asked_without_it_until_the_next_start(
    model: LanguageModel, models: ModelServer, code: int
) -> None:
    models.chat_default = WithoutSchemas(code)
    for _ in range(3):
        assert (await model.complete("rules", "note", SCHEMA)).text == "[]"
    assert [bool(sent) for sent in formats(models)] == [True, False, False, False]
    restarted = open_model(models)
    await restarted.complete("rules", "note", SCHEMA)
    await restarted.close()
    assert [bool(sent) for sent in formats(models)][4:] == [True, False]


async def test_a_request_that_is_refused_without_a_schema_too_says_nothing_about_schemas(
    model: LanguageModel, models: ModelServer
) -> None:
    models.chat_replies.extend([Status(400), Status(400)])
    with pytest.raises(errors.InvalidModelReply):
        await model.complete("rules", "note", SCHEMA)
    await model.complete("rules", "note", SCHEMA)
    assert [bool(sent) for sent in formats(models)] == [True, False, True]


@pytest.mark.parametrize("behaviour", [Status(429), Status(503), Truncated(), Reply(" ")])
async def test_other_failures_are_not_taken_for_a_refused_schema(
    model: LanguageModel, models: ModelServer, behaviour: Any
) -> None:
    models.chat_replies.append(behaviour)
    with pytest.raises(errors.LociError):
        await model.complete("rules", "note", SCHEMA)
    assert len(models.chat_calls) == 1


@pytest.mark.parametrize("schema", [prompt.REPLY_SCHEMA, *reply_schemas.BY_DIRECTIVE.values()])
def test_every_schema_is_one_that_strict_endpoints_take(schema: Any) -> None:
    assert schema["type"] == "object"
    for part in _parts(schema):
        if part.get("type") == "object":
            assert part["required"] == list(part["properties"])
            assert part["additionalProperties"] is False
    json.dumps(schema)


def test_the_prompt_of_every_pass_has_a_schema() -> None:
    passes = [anti_patterns, consolidate, consolidate_graph, episodes, extract_entities, facts, preferences]
    passes += [session_evaluation, skill_gaps]
    of_revision = {skill_revision.CONSOLIDATION, skill_revision.OPTIMISATION}
    assert {a_pass.DIRECTIVE for a_pass in passes} | of_revision == set(reply_schemas.BY_DIRECTIVE)


def _parts(schema: Any) -> Any:
    yield schema
    for part in [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]:
        yield from _parts(part)
