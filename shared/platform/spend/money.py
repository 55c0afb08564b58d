"""Money is Decimal from the price list to the last digit of an answer: it never passes through a float."""

from decimal import Context, Decimal, Inexact

import orjson

_MILLION = Decimal(1_000_000)
# Wide enough for any tokens at any price that is accepted; a digit that would be lost is an error.
_EXACT = Context(prec=60, traps=[Inexact])


def cost(tokens: int, per_million: Decimal) -> Decimal:
    """Return what tokens cost at a price in USD per million, exactly."""
    return _EXACT.divide(_EXACT.multiply(Decimal(tokens), per_million), _MILLION)


def total(amounts: list[Decimal]) -> Decimal:
    """Return a sum, exactly."""
    added = Decimal(0)
    for amount in amounts:
        added = _EXACT.add(added, amount)
    return added


def to_json_number(amount: Decimal | None) -> orjson.Fragment | None:
    """Return an amount as a JSON number with its own digits."""
    return None if amount is None else orjson.Fragment(to_text(amount))


def to_text(amount: Decimal) -> str:
    """Return an amount without exponent and without zeros that say nothing."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
