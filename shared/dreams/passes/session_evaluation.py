"""A model's evaluation of a session, parsed from its reply and stored as a feedback signal."""

import re
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from shared.conversation.feedback.feedback_signal import MAX_SUMMARY, FeedbackSignalDraft, SignalType
from shared.foundation import errors, model_output

MAX_SUMMARY_WORDS = 15
# With these limits the evaluation as JSON fits into the detail of a signal.
_MAX_TOOLS = 10
_MAX_TOOL_LENGTH = 64
_MAX_CORRECTIONS = 1000
_UNSTORABLE = re.compile("[\x00-\x1f\ud800-\udfff]+")


class Quality(StrEnum):
    """How well a session served its user."""

    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"


class Evaluation(BaseModel):
    """A model's evaluation of a session. `summary` has at most 15 words."""

    model_config = ConfigDict(frozen=True)

    summary: str
    tools_worked_well: tuple[str, ...]
    tools_failed_or_missed: tuple[str, ...]
    corrections_made: int
    overall_quality: Quality

    def signal(self) -> FeedbackSignalDraft:
        """Return the signal to store: its detail is the evaluation as JSON."""
        return FeedbackSignalDraft(
            type=SignalType.SESSION_SUMMARY, summary=self.summary, detail=self.model_dump_json()
        ).validated()


def parse(reply: str) -> Evaluation:
    """Parse a reply to the directive `session-evaluation`.

    A longer summary is cut to its first 15 words. Raises errors.InvalidModelReply if the reply has no
    object, no summary, or a quality other than good, fair or poor: a default would rate sessions at random.
    """
    payload = model_output.parse_object(reply, "summary", "overall_quality", "overallQuality")
    failed_tools = _first_of(payload, "tools_failed_or_missed", "toolsFailedOrMissed")
    return Evaluation(
        summary=_parse_summary(payload.get("summary")),
        tools_worked_well=_parse_tools(_first_of(payload, "tools_worked_well", "toolsWorkedWell")),
        tools_failed_or_missed=_parse_tools(failed_tools),
        corrections_made=_parse_count(_first_of(payload, "corrections_made", "correctionsMade")),
        overall_quality=_parse_quality(_first_of(payload, "overall_quality", "overallQuality")),
    )


def _first_of(payload: dict[str, Any], *names: str) -> Any:
    return next((payload[name] for name in names if name in payload), None)


def _parse_summary(value: Any) -> str:
    words = _to_text(value).split()
    if not words:
        raise errors.InvalidModelReply("the evaluation has no summary")
    return " ".join(words[:MAX_SUMMARY_WORDS])[:MAX_SUMMARY]


def _to_text(value: Any) -> str:
    return _UNSTORABLE.sub(" ", value) if isinstance(value, str) else ""


def _parse_tools(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    names = [text[:_MAX_TOOL_LENGTH] for item in items if (text := _to_text(item).strip())]
    return tuple(dict.fromkeys(names))[:_MAX_TOOLS]


def _parse_count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(min(max(value, 0), _MAX_CORRECTIONS)) if value == value else 0  # noqa: PLR0124  (NaN is not equal to itself)


def _parse_quality(value: Any) -> Quality:
    try:
        return Quality(_to_text(value).strip().lower())
    except ValueError:
        raise errors.InvalidModelReply("the evaluation's overall_quality is not good, fair or poor") from None
