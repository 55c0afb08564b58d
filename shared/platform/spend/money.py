"""Exact arithmetic with money.

Money is a Decimal from the price list to the last digit of a response. It is never converted to a float.
"""

from decimal import Context, Decimal, Inexact

import orjson

_MILLION = Decimal(1_000_000)
# Wide enough for every number of tokens at every valid price. A result that needs rounding is an error.
_EXACT = Context(prec=60, traps=[Inexact])


def cost(tokens: int, per_million: Decimal) -> Decimal:
    """Return the exact cost in USD of tokens at a price in USD per million."""
    return _EXACT.divide(_EXACT.multiply(Decimal(tokens), per_million), _MILLION)


def total(amounts: list[Decimal]) -> Decimal:
    """Return the exact sum of amounts."""
    result = Decimal(0)
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return result


def to_json_number(amount: Decimal | None) -> orjson.Fragment | None:
    """Return an amount as a JSON number with all its digits."""
    return None if amount is None else orjson.Fragment(to_text(amount))


def to_text(amount: Decimal) -> str:
    """Return an amount as text, without an exponent and without trailing zeros."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
