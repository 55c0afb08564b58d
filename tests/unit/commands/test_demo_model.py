"""`loci demo --model local`: it waits for what the gateway reports, and counts refusals by their reason."""

from collections import Counter
from typing import Any

import httpx
import pytest

from services.commands import demo_model
from shared.foundation import errors


def gateway(*replies: dict[str, Any]) -> httpx.Client:
    """Return a client of a gateway that answers one request after the other."""
    remaining = iter(replies)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=next(remaining)))
    return httpx.Client(transport=transport, base_url="http://gateway")


def status(**pending: int) -> dict[str, Any]:
    return {"pending": pending}


def test_whatever_the_gateway_counts_as_pending_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_model, "_POLL_SECONDS", 0)
    with gateway(status(enrichment=2), status(enrichment=0, summary=1), status(enrichment=0)) as client:
        demo_model.wait_until_idle(client)
        with pytest.raises(StopIteration):
            demo_model.wait_until_idle(client)


def test_work_that_does_not_end_is_an_error_that_names_it() -> None:
    with (
        gateway(status(enrichment=2, embedding=0)) as client,
        pytest.raises(errors.Unavailable, match="2 enrichment"),
    ):
        demo_model.wait_until_idle(client, within=-1)


def test_the_memories_of_all_pages_are_listed() -> None:
    pages: list[dict[str, Any]] = [
        {"results": [{"id": "a"}], "next_cursor": "x"},
        {"results": [{"id": "b"}], "next_cursor": None},
    ]
    with gateway(*pages) as client:
        assert demo_model.list_memories(client, {}) == [{"id": "a"}, {"id": "b"}]


def test_refused_notes_are_counted_by_the_reason_without_its_words() -> None:
    reasons = ["over budget: a", "over budget: b, c", "answer cut off", None]
    counts = demo_model.count_refused_notes([{"failure_reason": reason} for reason in reasons])
    assert demo_model.format_counts(counts) == "2 over budget, 1 answer cut off"


def test_the_refusals_of_a_run_are_counted_by_code(capsys: pytest.CaptureFixture[str]) -> None:
    codes = ["loses_specifics", "blank", "loses_specifics"]
    passes: list[dict[str, Any]] = [
        {"name": "consolidate", "state": "done", "reason": None, "applied": {"merged": 1}},
        {"name": "deduplicate", "state": "done", "reason": "nothing", "applied": {}},
    ]
    passes[0]["rejections"] = [{"code": code} for code in codes]
    passes[1]["rejections"] = []
    refusals = Counter[str]()
    demo_model.print_run({"id": "r", "passes": passes}, refusals)
    assert refusals == {"loses_specifics": 2, "blank": 1}
    printed = capsys.readouterr().out
    assert "1 merged; refused: 2 loses_specifics, 1 blank" in " ".join(printed.split())
