"""Ask the model about many items in parts, each of which succeeds or fails for itself.

A part whose answer is cut off is asked again in halves. A part without a usable answer is set aside with
the reason, and the other parts are asked all the same. What was answered is never lost because of what
comes later: when the model becomes unavailable, or the time or the budget is used up, the rest stays due.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from shared.dreams.runs.outcome import PassSkipped
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors
from workers.passes.pass_context import PassContext

Item = TypeVar("Item")
Answer = TypeVar("Answer")
MAX_HALVINGS = 5
_MAX_FRUITLESS = 3
"""After this many unusable answers and none that is usable, the model itself is at fault."""


@dataclass(slots=True)
class Answers(Generic[Item, Answer]):
    """What the model answered: the parts with a usable answer, and the parts that were set aside."""

    usable: list[tuple[list[Item], Answer]] = field(default_factory=list)
    refused: list[tuple[list[Item], errors.InvalidModelReply]] = field(default_factory=list)
    is_complete: bool = True

    @property
    def items(self) -> list[Item]:
        """The items of the parts with a usable answer."""
        return [item for part, _ in self.usable for item in part]

    @property
    def has_more(self) -> bool:
        """Whether items are left without a usable answer."""
        return bool(self.refused) or not self.is_complete

    def require_usable(self) -> None:
        """Raise what was wrong with the first answer if none is usable."""
        if self.refused and not self.usable:
            raise self.refused[0][1]

    def rejections(self, name: Callable[[Sequence[Item]], dict[str, Any]]) -> list[dict[str, Any]]:
        """Return why parts were set aside; `name` returns how a part is named in the run."""
        return [{"code": _code(error), "detail": str(error), **name(part)} for part, error in self.refused]


def _code(error: errors.InvalidModelReply) -> RejectionCode:
    is_cut_off = isinstance(error, errors.CutOffReply)
    return RejectionCode.CUT_OFF if is_cut_off else RejectionCode.UNUSABLE_REPLY


async def ask_in_parts(
    context: PassContext,
    parts: Sequence[list[Item]],
    ask: Callable[[list[Item]], Awaitable[Answer]],
    inputs_of: Callable[[Sequence[Item]], dict[str, Any]],
) -> Answers[Item, Answer]:
    """Ask about each part and return the answers.

    `ask` asks the model about one part and parses its reply. `inputs_of` names items as inputs of the pass:
    those whose answers were not cut off count as read if the pass gives up. Raises errors.Unavailable and
    PassSkipped only if no part has a usable answer.
    """
    answers: Answers[Item, Answer] = Answers()
    given: list[Item] = []
    waiting = deque((part, 0) for part in parts)
    while waiting:
        if (answers.usable or answers.refused) and not context.has_time():
            answers.is_complete = False
            break
        part, halvings = waiting.popleft()
        context.inputs = inputs_of([*given, *part])
        try:
            answers.usable.append((part, await ask(part)))
            given += part
        except errors.CutOffReply as error:
            context.inputs = inputs_of(given)
            if len(part) > 1 and halvings < MAX_HALVINGS:
                middle = len(part) // 2
                waiting.extendleft([(part[middle:], halvings + 1), (part[:middle], halvings + 1)])
            else:
                answers.refused.append((part, error))
        except errors.InvalidModelReply as error:
            given += part
            answers.refused.append((part, error))
        except (errors.Unavailable, PassSkipped):
            if not answers.usable:
                raise
            answers.is_complete = False
            break
        if len(answers.refused) >= _MAX_FRUITLESS and not answers.usable:
            answers.is_complete = False
            break
    return answers
