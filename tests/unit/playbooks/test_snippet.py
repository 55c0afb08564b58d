"""A playbook fits into a snippet, and says first what matters most."""

from datetime import UTC, datetime

from shared.conversation.scratchpad.snippet import MAX_CONTENT
from shared.memory.playbooks.playbook import Playbook, Reason, ToolCall, words_digest
from shared.memory.playbooks.search import as_snippet


def playbook(*calls: ToolCall, user_query: str = "A flight?") -> Playbook:
    return Playbook(
        id="p",
        flow_dact="book_flight",
        slots={"to": "LIS"},
        tool_calls=list(calls),
        outcome="success",
        user_query=user_query,
        promoted=True,
        reason=Reason.REPORTED,
        session_id=None,
        agent_id="default",
        user_id=None,
        created_at=datetime.now(UTC),
        tenant="t",
    )


def test_tools_stand_in_their_order_with_their_parameters() -> None:
    calls = (ToolCall(tool_id="search", parameters={"to": "LIS"}), ToolCall(tool_id="book"))
    assert as_snippet(playbook(*calls)).splitlines() == [
        "Playbook for book_flight (success).",
        "Asked: A flight?",
        'Slots: {"to":"LIS"}',
        "Tools, in this order:",
        '1. search {"to":"LIS"}',
        "2. book {}",
    ]
    assert "Tools" not in as_snippet(playbook())


def test_the_largest_playbook_fits() -> None:
    calls = [ToolCall(tool_id="t" * 64, parameters={"p": "x" * 4000}) for _ in range(32)]
    snippet = as_snippet(playbook(*calls, user_query="q" * 4000))
    assert len(snippet) == MAX_CONTENT
    assert snippet.startswith("Playbook for book_flight (success).\nAsked: q")


def test_the_same_words_have_the_same_digest() -> None:
    assert words_digest("Please find A flight!") == words_digest("find flight")
    assert words_digest("find flight") != words_digest("flight find")
    assert words_digest("ab c") != words_digest("a bc")
