"""A model's judgement of a session, read from its reply and kept as the detail of a SessionSummary."""

import re
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from shared.conversation.feedback.feedback_signal import MAX_SUMMARY, FeedbackSignalDraft, SignalType
from shared.foundation import errors, model_output

SUMMARY_WORDS = 15
# Such that the whole, as JSON, stays within a detail.
_TOOLS = 10
_TOOL_LENGTH = 64
_UNSTORABLE = re.compile("[\x00-\x1f\ud800-\udfff]+")


class Quality(StrEnum):
    """How well a session served its user."""

    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"


class Evaluation(BaseModel):
    """What a model thinks of a session. `summary` has at most 15 words."""

    model_config = ConfigDict(frozen=True)

    summary: str
    tools_worked_well: tuple[str, ...]
    tools_failed_or_missed: tuple[str, ...]
    corrections_made: int
    overall_quality: Quality

    def signal(self) -> FeedbackSignalDraft:
        """Return the signal that keeps it: its detail is the judgement as JSON."""
        return FeedbackSignalDraft(
            type=SignalType.SESSION_SUMMARY, summary=self.summary, detail=self.model_dump_json()
        ).validated()


def parse(reply: str) -> Evaluation:
    """Read a reply to `session-evaluation`.

    Too long a summary is cut to its first 15 words. Raises errors.BadReply when there is no object,
    no summary, or a quality other than good, fair or poor: a guess would mark sessions at random.
    """
    told = model_output.parse_object(reply, "summary", "overall_quality", "overallQuality")
    return Evaluation(
        summary=_summary(told.get("summary")),
        tools_worked_well=_tools(_either(told, "tools_worked_well", "toolsWorkedWell")),
        tools_failed_or_missed=_tools(_either(told, "tools_failed_or_missed", "toolsFailedOrMissed")),
        corrections_made=_count(_either(told, "corrections_made", "correctionsMade")),
        overall_quality=_quality(_either(told, "overall_quality", "overallQuality")),
    )


def _either(told: dict[str, Any], *names: str) -> Any:
    return next((told[name] for name in names if name in told), None)


def _summary(value: Any) -> str:
    words = _text(value).split()
    if not words:
        raise errors.InvalidModelReply("the evaluation has no summary")
    return " ".join(words[:SUMMARY_WORDS])[:MAX_SUMMARY]


def _text(value: Any) -> str:
    return _UNSTORABLE.sub(" ", value) if isinstance(value, str) else ""


def _tools(value: Any) -> tuple[str, ...]:
    offered = value if isinstance(value, list) else [value]
    named = [text[:_TOOL_LENGTH] for one in offered if (text := _text(one).strip())]
    return tuple(dict.fromkeys(named))[:_TOOLS]


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(min(max(value, 0), 1000)) if value == value else 0  # noqa: PLR0124  (NaN is not itself)


def _quality(value: Any) -> Quality:
    try:
        return Quality(_text(value).strip().lower())
    except ValueError:
        raise errors.InvalidModelReply("the evaluation's overall_quality is not good, fair or poor") from None
