"""However a language model fails, each memory ends in a defined state and stays searchable."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.faults.by_word import ByWord
from tests.faults.history import History, RunFigures, Save, split_in_two
from tests.faults.processes import Fleet
from tests.integration.local.conditions import until
from tests.standins import behaviours
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

ATTEMPTS = 3
# What an endpoint does that is away: the memory waits, however often that happens.
AWAY: dict[str, Behaviour] = {
    "busy": behaviours.Status(429),
    "paused": behaviours.Status(429, retry_after=1),
    "broken": behaviours.Status(500),
    "gone": behaviours.Status(502),
    "hangup": behaviours.Drop(),
    "cut": behaviours.Cut(),
}
# Answers of something that stands in the model's place, and why the memory fails when others are answered.
FOREIGN: dict[str, tuple[Behaviour, str]] = {
    "page": (behaviours.Garbage(), "not a JSON object"),
    "void": (behaviours.Garbage(""), "not a JSON object"),
    "shapeless": (behaviours.WrongShape(), "has no 'choices'"),
}
# Replies that cannot be used, and why the memory then fails. The model is asked twice.
UNUSABLE: dict[str, tuple[Behaviour, str]] = {
    "choiceless": (behaviours.EmptyChoices(), "unknown shape"),
    "refused": (behaviours.Refusal(), "refused"),
    "mute": (behaviours.Reply(" "), "answered nothing"),
    "prose": (behaviours.Reply("I have saved that for you!"), "no JSON array"),
    "hollow": (behaviours.Reply('[{"content": " "}, {"tags": ["x"]}, {"content": 7}]'), "no item"),
}
CUT_OFF: dict[str, Behaviour] = {
    "half": behaviours.Truncated('[{"content": "never finished"}]', keep=20),
    "endless": behaviours.Reply("<think>Let me see. The note says"),
}
GOOD: dict[str, Behaviour] = {
    "plain": behaviours.Reply(split_in_two),
    "thoughtful": behaviours.Thinking(split_in_two),
    "fenced": behaviours.Fenced(split_in_two),
    "slow": behaviours.Slow(0.3, behaviours.Reply(split_in_two)),
}


async def test_every_failure_of_the_model_is_stored_with_its_reason_and_the_memory_stays_searchable(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    report: Callable[[RunFigures], None],
) -> None:
    unusable = {word: behaviour for word, (behaviour, _) in (UNUSABLE | FOREIGN).items()} | CUT_OFF
    lasting = {f"{word}zz": plan for word, plan in (unusable | GOOD).items()}
    passing = {f"{word}zz": plan for word, plan in AWAY.items()}
    faults = unusable | AWAY
    models.chat_default = ByWord(lasting | passing, behaviours.Reply("[]"))
    # No process is killed here. A short lease on a busy machine would give jobs another reason for failing.
    fleet = make_fleet(
        llm_base_url=models.url, llm_model="m", job_max_attempts=ATTEMPTS, llm_concurrency=16, job_lease=30
    )
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    saves = {"plain": await _save(history, "plain")}
    await history.quiet(within=60)  # once it has answered, what it refuses pauses nothing
    others = [*faults, *(word for word in GOOD if word != "plain"), "idle"]
    saves |= {word: await _save(history, word) for word in others}
    for word in faults:
        assert saves[word].id in await history.search_ids(saves[word].word), word
    await asyncio.to_thread(
        until, lambda: all(_count_calls(models, word) > ATTEMPTS for word in AWAY), within=60
    )
    for word in AWAY:
        assert (await _load_memory(history, saves[word]))["state"] == "pending", word
    back = {f"{word}zz": behaviours.Reply(split_in_two) for word in AWAY}
    models.chat_default = ByWord(lasting | back, behaviours.Reply("[]"))
    await history.quiet(within=90)
    for word, (_, reason) in UNUSABLE.items():
        memory = await _load_memory(history, saves[word])
        assert memory["state"] == "failed", word
        assert reason in memory["failure_reason"], word
        assert _count_calls(models, word) == 2, word
    for word, (_, reason) in FOREIGN.items():
        memory = await _load_memory(history, saves[word])
        assert memory["state"] == "failed", word
        assert reason in memory["failure_reason"], word
        assert _count_calls(models, word) >= ATTEMPTS, word
    for word in CUT_OFF:
        assert (await _load_memory(history, saves[word]))["failure_reason"] == "answer cut off", word
    for word in AWAY:
        assert (await _load_memory(history, saves[word]))["state"] == "archived", word
    for word in GOOD:
        assert (await _load_memory(history, saves[word]))["state"] == "archived", word
    assert (await _load_memory(history, saves["idle"]))["state"] == "kept-raw"
    report(await history.check(f"language model failing in {len(faults)} ways", len(faults)))


async def test_a_model_that_says_when_to_come_back_is_not_asked_before(
    make_fleet: Callable[..., Fleet], remember: Callable[..., Any], models: ModelServer
) -> None:
    models.chat_default = behaviours.Reply(split_in_two)
    models.chat_replies.append(behaviours.Status(429, retry_after=2))
    fleet = make_fleet(llm_base_url=models.url, llm_model="m")
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    save = await history.save()
    await history.quiet(within=20)
    first, second = models.chat_calls
    assert second.at - first.at >= 2
    assert (await _load_memory(history, save))["state"] == "archived"


async def test_enrichment_resumes_when_the_model_is_back(
    make_fleet: Callable[..., Fleet], remember: Callable[..., Any], models: ModelServer
) -> None:
    """No memory has failed meanwhile: those that waited and new ones are enriched."""
    models.chat_default = behaviours.Reply(split_in_two)
    models.stop()
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", job_max_attempts=ATTEMPTS)
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    waiting = await history.save()
    await asyncio.to_thread(until, lambda: fleet.log.count("jobs_rescheduled") > ATTEMPTS, within=60)
    assert (await _load_memory(history, waiting))["state"] == "pending"
    models.start()
    await history.save_many(10)
    await history.quiet(within=90)
    states = [(await _load_memory(history, save))["state"] for save in history.saves]
    assert states == ["archived"] * 11
    await history.check("")


async def _save(history: History, word: str) -> Save:
    return await history.save(metadata={"fault": word}, category=f"faults/{word}zz")


async def _load_memory(history: History, save: Save) -> dict[str, Any]:
    return dict((await history.client.get(f"/v1/memories/{save.id}")).json())


def _count_calls(models: ModelServer, word: str) -> int:
    return sum(f"{word}zz" in call.raw.decode() for call in models.chat_calls)
