"""However a language model fails, a memory ends in a named state, searchable all the while (F8, F9)."""

from collections.abc import Callable
from typing import Any

from tests.faults.by_word import ByWord
from tests.faults.history import History, Save, Tally, split_in_two
from tests.faults.processes import Fleet
from tests.standins import behaviours as b
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

ATTEMPTS = 3
# Why an entry fails, by what the endpoint does each time; these are tried as often as allowed.
AWAY: dict[str, tuple[Behaviour, str]] = {
    "busy": (b.Status(429), "status 429"),
    "paused": (b.Status(429, retry_after=1), "status 429"),
    "broken": (b.Status(500), "status 500"),
    "gone": (b.Status(502), "status 502"),
    "silent": (b.Hang(), "language model is unavailable"),
    "hangup": (b.Drop(), "RemoteProtocolError"),
    "cut": (b.Cut(), "RemoteProtocolError"),
}
# What is answered and is no answer; these are asked twice.
UNUSABLE: dict[str, tuple[Behaviour, str]] = {
    "html": (b.Garbage(), "not JSON"),
    "shapeless": (b.WrongShape(), "unknown shape"),
    "choiceless": (b.EmptyChoices(), "unknown shape"),
    "refused": (b.Refusal(), "refused"),
    "mute": (b.Reply(" "), "answered nothing"),
    "prose": (b.Reply("I have saved that for you!"), "no JSON array"),
    "half": (b.Truncated('[{"content": "never finished"}]', keep=20), "no JSON array"),
    "endless": (b.Reply("<think>Let me see. The note says"), "no JSON array"),
    "hollow": (b.Reply('[{"content": " "}, {"tags": ["x"]}, {"content": 7}]'), "no item"),
    "forbidden": (b.Status(401, message="wrong key"), "status 401"),
}
GOOD: dict[str, Behaviour] = {
    "plain": b.Reply(split_in_two),
    "thoughtful": b.Thinking(split_in_two),
    "fenced": b.Fenced(split_in_two),
    "slow": b.Slow(0.3, b.Reply(split_in_two)),
}


async def test_every_failure_of_the_model_ends_with_its_reason_and_hides_nothing(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    tell: Callable[[Tally], None],
) -> None:
    bad = {word: behaviour for word, (behaviour, _) in (AWAY | UNUSABLE).items()}
    models.chat_default = ByWord({f"{word}zz": plan for word, plan in (bad | GOOD).items()}, b.Reply("[]"))
    # Nobody dies here, and a batch that a busy machine cuts off at a short lease has another reason.
    fleet = make_fleet(
        llm_base_url=models.url, llm_model="m", job_max_attempts=ATTEMPTS, llm_concurrency=16, job_lease=30
    )
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    saves = {word: await _save(history, word) for word in bad | GOOD | {"idle": None}}
    for word in bad:
        assert saves[word].id in await history.found(saves[word].word), word
    await history.quiet(within=60)
    for word, (_, reason) in (AWAY | UNUSABLE).items():
        entry = await _entry(history, saves[word])
        assert entry["state"] == "failed", word
        assert reason in entry["failure_reason"], word
        assert _calls(models, word) == (ATTEMPTS if word in AWAY else 2), word
    for word in GOOD:
        assert (await _entry(history, saves[word]))["state"] == "archived", word
    assert (await _entry(history, saves["idle"]))["state"] == "kept-raw"
    tell(await history.check("language model failing in 17 ways", len(bad)))


async def test_a_model_that_says_when_to_come_back_is_not_asked_before(
    make_fleet: Callable[..., Fleet], remember: Callable[..., Any], models: ModelServer
) -> None:
    models.chat_default = b.Reply(split_in_two)
    models.chat_replies.append(b.Status(429, retry_after=2))
    fleet = make_fleet(llm_base_url=models.url, llm_model="m")
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    save = await history.save()
    await history.quiet(within=20)
    first, second = models.chat_calls
    assert second.at - first.at >= 2
    assert (await _entry(history, save))["state"] == "archived"


async def test_enrichment_resumes_when_the_model_is_back(
    make_fleet: Callable[..., Fleet], remember: Callable[..., Any], models: ModelServer
) -> None:
    """What failed stays as it is; what was waiting and what is new is enriched."""
    models.chat_default = b.Reply(split_in_two)
    models.stop()
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", job_max_attempts=ATTEMPTS)
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    lost = await history.save()
    await history.quiet(within=20)
    assert (await _entry(history, lost))["failure_reason"] == "language model is unavailable: ConnectError"
    models.start()
    await history.save_many(10)
    await history.quiet(within=20)
    states = [(await _entry(history, save))["state"] for save in history.saves]
    assert states == ["failed", *["archived"] * 10]
    await history.check("")


async def _save(history: History, word: str) -> Save:
    return await history.save(metadata={"fault": word}, category=f"faults/{word}zz")


async def _entry(history: History, save: Save) -> dict[str, Any]:
    return dict((await history.client.get(f"/v1/memories/{save.id}")).json())


def _calls(models: ModelServer, word: str) -> int:
    return sum(f"{word}zz" in call.raw.decode() for call in models.chat_calls)
