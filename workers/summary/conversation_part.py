"""Read the turns that fit into one prompt. The rest of a long conversation is summarised after them."""

from shared.conversation.summary import queries
from shared.conversation.summary.due import DueSummary
from shared.conversation.turns.turn import Turn
from shared.infra.transaction import Transaction
from workers.summary import prompt

_PAGE = 50


async def read_part(tx: Transaction, due: DueSummary, max_tokens: int) -> list[Turn]:
    """Return the first turns that are due and together have at most `max_tokens`.

    A first turn over the limit is returned alone, and none if the turns were deleted meanwhile.
    """
    part: list[Turn] = []
    after = due.after
    while True:
        page = await queries.list_turns(tx, due.session, after, due.before, _PAGE)
        for turn in page:
            turn_tokens = prompt.tokens_of_turn(turn)
            if part and turn_tokens > max_tokens:
                return part
            part.append(turn)
            max_tokens -= turn_tokens
        if len(page) < _PAGE:
            return part
        after = page[-1].seq
