"""Parts of a pass succeed or fail each for itself, and what was answered is kept."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from shared.dreams.runs.outcome import PassSkipped
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors
from workers.passes import parts
from workers.passes.parts import Answers, ask_in_parts
from workers.passes.pass_context import PassContext

CUT_OFF, USELESS = errors.CutOffReply("cut off"), errors.InvalidModelReply("no plan")
AWAY = errors.Unavailable("the model", "away")


class Context:
    """A pass whose time is used up after a number of questions."""

    def __init__(self, questions: int = 1000) -> None:
        self.inputs: dict[str, Any] | None = None
        self._questions = questions
        self.asked: list[list[int]] = []

    def has_time(self) -> bool:
        return len(self.asked) < self._questions


async def ask_about(
    batches: Sequence[list[int]], error_of: Callable[[list[int]], Exception | None], context: Context
) -> Answers[int, str]:
    async def ask(part: list[int]) -> str:
        context.asked.append(part)
        if error := error_of(part):
            raise error
        return "answer"

    return await ask_in_parts(cast(PassContext, context), batches, ask, lambda items: {"items": list(items)})


async def test_every_part_is_answered_and_counts_as_given() -> None:
    context = Context()
    answers = await ask_about([[1, 2], [3]], lambda _: None, context)
    assert (answers.items, answers.has_more) == ([1, 2, 3], False)
    assert context.inputs == {"items": [1, 2, 3]}


async def test_a_cut_off_part_is_asked_in_halves_in_its_order() -> None:
    context = Context()
    answers = await ask_about([[1, 2, 3], [4]], lambda part: CUT_OFF if len(part) > 1 else None, context)
    assert context.asked == [[1, 2, 3], [1], [2, 3], [2], [3], [4]]
    assert (answers.items, answers.has_more) == ([1, 2, 3, 4], False)


async def test_what_is_always_cut_off_is_set_aside_and_does_not_count_as_given() -> None:
    context = Context()
    answers = await ask_about([[1, 2], [3]], lambda part: CUT_OFF if 1 in part else None, context)
    assert [part for part, _ in answers.refused] == [[1]]
    assert answers.has_more
    assert context.inputs == {"items": [2, 3]}
    [rejection] = answers.rejections(lambda part: {"ids": list(part)})
    assert rejection == {"code": RejectionCode.CUT_OFF, "detail": "cut off", "ids": [1]}


async def test_only_a_cut_off_part_left_leaves_nothing_given() -> None:
    context = Context()
    answers = await ask_about([[1]], lambda _: CUT_OFF, context)
    assert (context.asked, context.inputs) == ([[1]], {"items": []})
    with pytest.raises(errors.CutOffReply):
        answers.require_usable()


@pytest.mark.parametrize("poison", [0, 63])
async def test_a_part_is_halved_five_times(poison: int) -> None:
    context = Context()
    answers = await ask_about([list(range(64))], lambda part: CUT_OFF if poison in part else None, context)
    assert [len(part) for part, _ in answers.refused] == [64 / 2**parts.MAX_HALVINGS] == [2]


async def test_a_useless_answer_sets_its_part_aside_and_counts_as_given() -> None:
    context = Context()
    answers = await ask_about([[1], [2]], lambda part: USELESS if part == [1] else None, context)
    assert (answers.items, [part for part, _ in answers.refused]) == ([2], [[1]])
    assert answers.has_more
    assert context.inputs == {"items": [1, 2]}
    answers.require_usable()


async def test_a_model_that_never_answers_usefully_is_asked_three_times() -> None:
    context = Context()
    errors_by_part = {0: errors.InvalidModelReply("the first")}
    answers = await ask_about(
        [[number] for number in range(9)], lambda part: errors_by_part.get(part[0], USELESS), context
    )
    assert len(context.asked) == 3
    assert (answers.is_complete, answers.has_more) == (False, True)
    with pytest.raises(errors.InvalidModelReply, match="the first"):
        answers.require_usable()


@pytest.mark.parametrize("error", [AWAY, PassSkipped("over budget")])
async def test_what_was_answered_is_kept_when_the_model_goes_away(error: Exception) -> None:
    answers = await ask_about([[1], [2], [3]], lambda part: error if part == [2] else None, Context())
    assert (answers.items, answers.has_more) == ([1], True)
    with pytest.raises(type(error)):
        await ask_about([[1]], lambda _: error, Context())


async def test_the_rest_stays_due_when_the_time_is_used_up() -> None:
    context = Context(questions=0)
    answers = await ask_about([[1], [2]], lambda _: None, context)
    assert (answers.items, answers.has_more) == ([1], True), "the first is asked in any case"
    context = Context(questions=1)
    answers = await ask_about([[1], [2]], lambda _: USELESS, context)
    assert len(context.asked) == 1
    assert not answers.is_complete
