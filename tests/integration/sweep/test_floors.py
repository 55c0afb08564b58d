"""The sweep learns the floor of a generation, and a message to which nothing is relevant recalls nothing."""

from collections.abc import Callable

from shared.foundation import config
from shared.foundation.stages import RecordKind
from shared.platform.auth import api_keys
from shared.search.floor import MIN_RECORDS
from tests.conftest import running_gateway
from tests.integration.sweep.stack import TestStack
from tests.standins.models import ModelServer

UNRELATED = "Zzyzx qwyjibo frobnicate?"


async def _save_many(stack: TestStack, first: int, count: int) -> None:
    memories = [
        {"content": f"word{n} word{n + 1} word{n + 2}", "enrich": False} for n in range(first, first + count)
    ]
    for start in range(0, count, 100):
        batch = {"memories": memories[start : start + 100]}
        response = await stack.client.post("/v1/memories/batch", json=batch)
        assert response.status_code == 201, response.text
    await stack.process_all()


async def test_the_floor_is_learnt_from_enough_records_and_again_when_they_have_doubled(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> None:
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="stand-in")
    async with running_gateway(settings, tenant) as gateway:
        stack = TestStack(gateway)
        await _save_many(stack, 0, MIN_RECORDS - 1)
        assert (await stack.sweep()).learnt_floors == 0
        assert (await stack.live_generation(RecordKind.MEMORY)).cosine_floor is None
        await _save_many(stack, 1000, 1)
        assert (await stack.sweep()).learnt_floors == 1
        generation = await stack.live_generation(RecordKind.MEMORY)
        assert generation.cosine_floor is not None
        assert 0 < generation.cosine_floor < 1
        assert generation.floor_points == MIN_RECORDS
        await _save_many(stack, 2000, MIN_RECORDS - 1)
        assert (await stack.sweep()).learnt_floors == 0
        await _save_many(stack, 3000, 1)
        assert (await stack.sweep()).learnt_floors == 1
        assert (await stack.live_generation(RecordKind.MEMORY)).floor_points == 2 * MIN_RECORDS


async def test_a_message_that_nothing_is_relevant_to_recalls_the_newest_at_first_and_then_nothing(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> None:
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="stand-in")
    async with running_gateway(settings, tenant) as gateway:
        stack = TestStack(gateway)
        labels = {"category": "anti-patterns/food", "tags": ["anti-pattern"], "enrich": False}
        await stack.save("Don't eat yellow snow, because it is dirty; instead drink tea.", **labels)
        for number in range(6):
            await stack.save(f"Fact {number} about the harbour.", enrich=False)
        await stack.process_all()
        session = await stack.open_session()
        first, second = [
            (await stack.client.post(f"/v1/sessions/{session}/context", json={"message": UNRELATED})).json()
            for _ in range(2)
        ]
        assert ("newest" in first["stages"], len(first["recalled"])) == (True, 5)
        assert second["recalled"] == []
        everything = {"query": UNRELATED, "min_similarity": -1}
        found = (await stack.client.post("/v1/memories/search", json=everything)).json()["results"]
        assert len(found) == 7


QUESTIONS = {
    "Ada's sister lives in Odense since May.": "where does the sister live?",
    "The heating was repaired on Tuesday.": "did anybody repair the heating yet?",
    "Grace takes the early train to work.": "which train does she usually take?",
    "The cat is called Mittens.": "what is the name of the cat?",
    "Lunch is served from noon until two.": "when is lunch over?",
    "The garage key hangs behind the door.": "where did we leave the garage key?",
    "Rent is due on the first of each month.": "when do we pay the rent?",
    "The dentist moved to Harbour Street.": "how do I get to the dentist?",
}
TEMPLATE = (
    "Ticket {}: the customer reports that the order did not arrive and asks for a refund of the whole amount."
)


async def test_alike_records_of_one_tenant_silence_neither_searches_nor_contexts_of_another(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> None:
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="stand-in")
    async with running_gateway(settings, tenant) as gateway:
        stack = TestStack(gateway)
        saved = [{"content": content, "enrich": False} for content in QUESTIONS]
        await stack.client.post("/v1/memories/batch", json={"memories": saved})
        await _save_of_another_tenant(stack, [TEMPLATE.format(n) for n in range(MIN_RECORDS)])
        await stack.process_all()
        assert (await stack.sweep()).learnt_floors == 1
        assert ((await stack.live_generation()).cosine_floor or 0.0) > 0.85
        stack.resources.search_index._live.clear()  # instead of waiting until it is read again
        first_results = {
            content: await _first_result(stack, question) for content, question in QUESTIONS.items()
        }
        assert {content: content for content in QUESTIONS} == first_results
        session = await stack.open_session()
        await stack.add_turn(session, "Hello.")  # the first turn of a session gets the newest memories
        message = {"message": "In which month does the sister who lives in Odense since May celebrate?"}
        context = (await stack.client.post(f"/v1/sessions/{session}/context", json=message)).json()
        assert [memory["content"] for memory in context["recalled"]][:1] == [next(iter(QUESTIONS))]


async def _save_of_another_tenant(stack: TestStack, contents: list[str]) -> None:
    key = await api_keys.issue(stack.resources.postgres, f"{stack.tenant}-other", rights=api_keys.RIGHTS)
    headers = {"authorization": f"Bearer {key}"}
    for start in range(0, len(contents), 100):
        batch = {"memories": [{"content": text, "enrich": False} for text in contents[start : start + 100]]}
        response = await stack.client.post("/v1/memories/batch", json=batch, headers=headers)
        assert response.status_code == 201, response.text


async def _first_result(stack: TestStack, question: str) -> str | None:
    found = (await stack.client.post("/v1/memories/search", json={"query": question})).json()
    assert found["degraded"] == []
    return found["results"][0]["content"] if found["results"] else None


async def test_keywords_alone_are_judged_strictly_once_there_are_enough_records(
    make_settings: Callable[..., config.Settings], tenant: str
) -> None:
    async with running_gateway(make_settings(apart=True), tenant) as gateway:
        stack = TestStack(gateway)
        await _save_many(stack, 0, MIN_RECORDS)
        message = "word5 and apples, pears, plums, cherries"
        session = await stack.open_session()
        await stack.add_turn(session, "Hello.")  # the first turn of a session gets the newest memories
        assert await _count_recalled(stack, session, message) == 3
        await stack.sweep()
        generation = await stack.live_generation(RecordKind.MEMORY)
        assert (generation.cosine_floor, generation.floor_points) == (None, MIN_RECORDS)
        gateway.resources.search_index._live.clear()  # instead of waiting until it is read again
        session = await stack.open_session()
        await stack.add_turn(session, "Hello.")
        assert await _count_recalled(stack, session, message) == 0
        assert await _count_recalled(stack, session, "word5") == 3


async def _count_recalled(stack: TestStack, session: str, message: str) -> int:
    body = {"message": message, "record_turn": False}
    context = (await stack.client.post(f"/v1/sessions/{session}/context", json=body)).json()
    return len(context["recalled"])
