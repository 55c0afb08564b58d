"""EN4: a rewriting that loses or invents something is repaired once, or the note stays as it was written."""

import json

import pytest

from tests.conftest import Gateway
from tests.integration.enrichment.conftest import contents, enrich, live, load
from tests.standins.behaviours import Reply, Truncated
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

NOTE = "The office in Kiel closes at 18:00, the one in Cologne at 18:30."
INVENTED = ["The office in Köln closes at 18:00.", "The office in Sülern closes at 18:30."]
RIGHT = ["The office in Kiel closes at 18:00.", "The office in Cologne closes at 18:30."]


def answer(texts: list[str]) -> Reply:
    return Reply(json.dumps([{"content": text} for text in texts]))


async def test_a_rewriting_with_other_names_keeps_the_note_and_says_that_it_would_have_lost_words(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = answer(INVENTED)
    raw = await enrich(enricher, NOTE)
    assert (raw["state"], raw["content"], raw["superseded_by"]) == ("kept-raw", NOTE, [])
    assert raw["failure_reason"] == "the rewriting lost words of the note"
    assert await live(enricher) == [NOTE]
    assert len(models.chat_calls) == 2, "one repair and no more"


async def test_no_reason_quotes_the_note_and_none_outlives_its_text(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = answer(["The password of the gate is known."])
    raw = await enrich(enricher, "The password of the gate is Zwiebel42.")
    assert raw["state"] == "kept-raw"
    history = (await enricher.client.get(f"/v1/memories/{raw['id']}/history")).json()["results"]
    reasons = [raw["failure_reason"], *(item["reason"] for item in history if item["reason"])]
    assert reasons == ["the rewriting lost words of the note"] * 2
    await enricher.client.patch(f"/v1/memories/{raw['id']}", json={"content": "The gate has a password."})
    assert (await load(enricher, raw["id"]))["failure_reason"] is None


async def test_a_repair_names_what_is_missing(enricher: Gateway, models: ModelServer) -> None:
    models.chat_default = answer(RIGHT)
    models.chat_replies.append(answer(INVENTED))
    raw = await enrich(enricher, NOTE)
    assert raw["state"] == "archived"
    assert sorted(await contents(enricher, raw["superseded_by"])) == sorted(RIGHT)
    repair = json.loads(models.chat_calls[1].body["messages"][-1]["content"])
    assert repair["content"] == NOTE
    assert repair["fault_of_last_answer"] == {
        "what": "the rewriting lost words of the note",
        "words": ["Kiel", "Cologne"],
    }


@pytest.mark.parametrize("useless", [Reply("Sorry."), Reply('[{"content": oops}]'), answer(INVENTED)])
async def test_a_useless_repair_keeps_the_note(
    enricher: Gateway, models: ModelServer, useless: Behaviour
) -> None:
    models.chat_default = useless
    models.chat_replies.append(answer(RIGHT[:1]))
    raw = await enrich(enricher, NOTE)
    assert raw["state"] == "kept-raw"
    assert await live(enricher) == [NOTE]


@pytest.mark.parametrize("of_second", [["Bob keeps goats."], []])
async def test_a_part_whose_rewriting_loses_something_keeps_the_whole_note(
    enricher: Gateway, models: ModelServer, of_second: list[str]
) -> None:
    first, second = "Ada keeps bees in Bremen. ", "Bob keeps goats in Ulm."
    models.chat_default = answer(of_second)
    models.chat_replies.extend([Truncated("[" * 9), answer(["Ada keeps bees in Bremen."])])
    raw = await enrich(enricher, first + second)
    assert (raw["state"], raw["failure_reason"]) == ("kept-raw", "the rewriting lost words of the note")
    assert await live(enricher) == [first + second]


async def test_nothing_durable_in_a_note_is_no_fault(enricher: Gateway, models: ModelServer) -> None:
    models.chat_default = Reply("[]")
    raw = await enrich(enricher, NOTE)
    assert (raw["state"], raw["failure_reason"]) == ("kept-raw", None)
    assert len(models.chat_calls) == 1
