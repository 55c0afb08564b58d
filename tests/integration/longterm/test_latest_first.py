"""LT22: the newer of two results that contradict each other stands first, in searches and in contexts."""

from typing import Any

from tests.agent import Agent, recalled_ids

OLDER, NEWER = "Ada's favourite colour is deep green.", "Ada's favourite colour is blue."
QUESTION = "Is deep green Ada's favourite colour?"
"""The older text has more of its words."""
JANUARY, MARCH = "2024-01-10T09:00:00Z", "2024-03-10T09:00:00Z"


def latest_above(results: list[dict[str, Any]]) -> list[str | None]:
    return [result["scores"].get("latest_above") for result in results]


async def test_the_memory_of_the_newer_event_stands_first_and_says_so(
    keeper: Agent, scope: dict[str, str]
) -> None:
    newer = await keeper.save(NEWER, occurred_at=MARCH, **scope)
    older = await keeper.save(OLDER, occurred_at=JANUARY, **scope)
    results = (await keeper.search(QUESTION, explain=True, **scope))["results"]
    assert [result["id"] for result in results] == [newer["id"], older["id"]]
    assert latest_above(results) == [older["id"], None]
    assert results[0]["score"] == results[1]["score"] > results[0]["scores"]["score"]


async def test_what_is_valid_since_later_is_newer_whenever_it_was_saved(
    keeper: Agent, scope: dict[str, str]
) -> None:
    await keeper.save(NEWER, occurred_at=JANUARY, valid_from=MARCH, **scope)
    await keeper.save(OLDER, occurred_at="2024-02-10T09:00:00Z", **scope)
    assert await keeper.search_contents(QUESTION, **scope) == [NEWER, OLDER]


async def test_what_is_true_later_than_the_time_that_is_asked_about_is_not_newer(
    keeper: Agent, scope: dict[str, str]
) -> None:
    await keeper.save(OLDER, occurred_at=JANUARY, **scope)
    await keeper.save(NEWER, occurred_at=MARCH, **scope)
    for as_of, expected in (("2024-02-10T09:00:00Z", [OLDER, NEWER]), (MARCH, [NEWER, OLDER])):
        assert await keeper.search_contents(QUESTION, as_of=as_of, **scope) == expected
    coming = "Ada's favourite colour is red."
    await keeper.save(coming, valid_from="2099-01-01T00:00:00Z", **scope)
    assert (await keeper.search_contents(QUESTION, validity="any", **scope))[0] == NEWER


async def test_without_a_time_what_was_said_last_is_newer(keeper: Agent, scope: dict[str, str]) -> None:
    await keeper.save(OLDER, **scope)
    await keeper.save(NEWER, **scope)
    assert await keeper.search_contents(QUESTION, **scope) == [NEWER, OLDER]
    await keeper.save(OLDER, **scope)
    assert await keeper.search_contents(QUESTION, **scope) == [OLDER, NEWER]


async def test_a_users_newer_memory_stands_above_the_common_one_of_its_key(
    keeper: Agent, scope: dict[str, str]
) -> None:
    common_scope = {"agent_id": scope["agent_id"]}
    key = {"namespace": "travel", "key": "means"}
    await keeper.save("Travel by train is what everyone prefers.", **key, **common_scope)
    await keeper.save("Ada flies on every travel.", **key, **scope)
    found = await keeper.search_contents("travel by train", **scope)
    assert found == ["Ada flies on every travel.", "Travel by train is what everyone prefers."]


async def test_a_common_memory_does_not_stand_above_a_users_own_of_its_key_nor_above_that_of_another_key(
    keeper: Agent, scope: dict[str, str]
) -> None:
    common_scope = {"agent_id": scope["agent_id"]}
    own, common, other = "Ada flies on every travel.", "Travel by train, everyone.", "Ada's long journeys."
    await keeper.save(own, namespace="travel/far", key="means", **scope)
    await keeper.save(common, namespace="travel/far", key="means", **common_scope)
    await keeper.save(other, namespace="travel", key="far/means", **scope)
    found = await keeper.search("Ada flies on travel", explain=True, **scope)
    assert found["results"][0]["content"] == own
    assert not any(latest_above(found["results"]))


async def test_without_the_index_the_newer_stands_first_too(agent: Agent, without_index: Agent) -> None:
    await agent.save(OLDER)
    await agent.save(NEWER)
    assert await without_index.search_contents(QUESTION) == [NEWER, OLDER]


async def test_a_question_about_the_past_keeps_its_order(keeper: Agent, scope: dict[str, str]) -> None:
    await keeper.save(OLDER, occurred_at=JANUARY, **scope)
    await keeper.save(NEWER, occurred_at=MARCH, **scope)
    assert await keeper.search_contents("Was deep green Ada's favourite colour before?", **scope) == [
        OLDER,
        NEWER,
    ]


async def test_the_newer_turn_stands_first_and_says_so(keeper: Agent, scope: dict[str, str]) -> None:
    session = await keeper.session(**scope)
    for content in (OLDER, NEWER):
        await keeper.append_turn(session, content, role="user")
    body = {"query": QUESTION, "explain": True, **scope}
    results = (await keeper.request("POST", "/v1/turns/search", json=body))["results"]
    assert [result["content"] for result in results] == [NEWER, OLDER]
    assert latest_above(results) == [f"{session}#1", None]


async def test_a_context_recalls_the_newer_first_and_explains_it(
    keeper: Agent, scope: dict[str, str]
) -> None:
    older = await keeper.save(OLDER, **scope)
    newer = await keeper.save(NEWER, **scope)
    session = await keeper.session(**scope)
    context = await keeper.context(session, QUESTION, explain=True)
    assert recalled_ids(context) == [newer["id"], older["id"]]
    assert context["explain"]["scores"][newer["id"]]["latest_above"] == older["id"]
