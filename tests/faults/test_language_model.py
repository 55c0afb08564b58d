"""However a language model fails, each memory ends in a defined state and stays searchable."""

from collections.abc import Callable
from typing import Any

from tests.faults.by_word import ByWord
from tests.faults.history import History, RunFigures, Save, split_in_two
from tests.faults.processes import Fleet
from tests.standins import behaviours
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

ATTEMPTS = 3
# What the endpoint does each time, and why the memory then fails. The maximum number of attempts is made.
AWAY: dict[str, tuple[Behaviour, str]] = {
    "busy": (behaviours.Status(429), "status 429"),
    "paused": (behaviours.Status(429, retry_after=1), "status 429"),
    "broken": (behaviours.Status(500), "status 500"),
    "gone": (behaviours.Status(502), "status 502"),
    "silent": (behaviours.Hang(), "language model is unavailable"),
    "hangup": (behaviours.Drop(), "RemoteProtocolError"),
    "cut": (behaviours.Cut(), "RemoteProtocolError"),
}
# Replies that cannot be used. The model is asked twice.
UNUSABLE: dict[str, tuple[Behaviour, str]] = {
    "html": (behaviours.Garbage(), "not JSON"),
    "shapeless": (behaviours.WrongShape(), "unknown shape"),
    "choiceless": (behaviours.EmptyChoices(), "unknown shape"),
    "refused": (behaviours.Refusal(), "refused"),
    "mute": (behaviours.Reply(" "), "answered nothing"),
    "prose": (behaviours.Reply("I have saved that for you!"), "no JSON array"),
    "half": (behaviours.Truncated('[{"content": "never finished"}]', keep=20), "no JSON array"),
    "endless": (behaviours.Reply("<think>Let me see. The note says"), "no JSON array"),
    "hollow": (behaviours.Reply('[{"content": " "}, {"tags": ["x"]}, {"content": 7}]'), "no item"),
    "forbidden": (behaviours.Status(401, message="wrong key"), "status 401"),
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
    faults = {word: behaviour for word, (behaviour, _) in (AWAY | UNUSABLE).items()}
    models.chat_default = ByWord(
        {f"{word}zz": plan for word, plan in (faults | GOOD).items()}, behaviours.Reply("[]")
    )
    # No process is killed here. A short lease on a busy machine would give jobs another reason for failing.
    fleet = make_fleet(
        llm_base_url=models.url, llm_model="m", job_max_attempts=ATTEMPTS, llm_concurrency=16, job_lease=30
    )
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    saves = {word: await _save(history, word) for word in faults | GOOD | {"idle": None}}
    for word in faults:
        assert saves[word].id in await history.search_ids(saves[word].word), word
    await history.quiet(within=60)
    for word, (_, reason) in (AWAY | UNUSABLE).items():
        memory = await _load_memory(history, saves[word])
        assert memory["state"] == "failed", word
        assert reason in memory["failure_reason"], word
        assert _count_calls(models, word) == (ATTEMPTS if word in AWAY else 2), word
    for word in GOOD:
        assert (await _load_memory(history, saves[word]))["state"] == "archived", word
    assert (await _load_memory(history, saves["idle"]))["state"] == "kept-raw"
    report(await history.check("language model failing in 17 ways", len(faults)))


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
    """Failed memories stay as they are; pending and new ones are enriched."""
    models.chat_default = behaviours.Reply(split_in_two)
    models.stop()
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", job_max_attempts=ATTEMPTS)
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    failed = await history.save()
    await history.quiet(within=20)
    assert (await _load_memory(history, failed))[
        "failure_reason"
    ] == "language model is unavailable: ConnectError"
    models.start()
    await history.save_many(10)
    await history.quiet(within=20)
    states = [(await _load_memory(history, save))["state"] for save in history.saves]
    assert states == ["failed", *["archived"] * 10]
    await history.check("")


async def _save(history: History, word: str) -> Save:
    return await history.save(metadata={"fault": word}, category=f"faults/{word}zz")


async def _load_memory(history: History, save: Save) -> dict[str, Any]:
    return dict((await history.client.get(f"/v1/memories/{save.id}")).json())


def _count_calls(models: ModelServer, word: str) -> int:
    return sum(f"{word}zz" in call.raw.decode() for call in models.chat_calls)
