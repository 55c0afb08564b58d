"""What a call used, read from the provider's own object, so that no token is counted twice.

`Usage.input` never holds cached tokens. Providers disagree on that, and each shape is told apart by
a name that only it has:

    prompt_tokens            OpenAI chat and embeddings: includes prompt_tokens_details.cached_tokens
    input_tokens             OpenAI Responses where input_tokens_details stands beside it: includes
                             its cached_tokens. Anthropic otherwise: excludes cache_read_input_tokens
                             (cached); cache_creation_input_tokens come on top, as input
    total_tokens alone       embeddings of servers that say no more

Anthropic bills writing to its cache at 1.25 times the input price; here it counts at the input
price, and who needs the difference sets a price of their own. Reasoning tokens are part of the
output everywhere and are not counted again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.foundation import errors

MAX_TOKENS = 10**12


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. What came out of the provider's cache is in `cached` and not in `input`."""

    input: int
    output: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        """All tokens, as budgets in tokens count them."""
        return self.input + self.output + self.cached


def parse_usage(told: Mapping[str, Any], field: str = "usage") -> Usage:
    """Return what a provider's usage object says.

    Raises errors.Invalid naming `field` for an unknown shape, for counts that are no whole numbers
    from 0 to 10^12, and for more cached tokens than the prompt has.
    """
    if "prompt_tokens" in told:
        cached = _detail(told, "prompt_tokens_details", field)
        return _including(_count(told, "prompt_tokens", field), cached, "completion_tokens", told, field)
    if "input_tokens" in told:
        return _of_input(told, field)
    if "total_tokens" in told:
        return Usage(_count(told, "total_tokens", field))
    raise errors.Invalid(field, "must have prompt_tokens, input_tokens or total_tokens")


def _of_input(told: Mapping[str, Any], field: str) -> Usage:
    responses, anthropic = "input_tokens_details" in told, any(name in told for name in _ANTHROPIC)
    if responses and anthropic:
        rule = f"must not have both input_tokens_details and {' or '.join(_ANTHROPIC)}"
        raise errors.Invalid(field, rule)
    count = _count(told, "input_tokens", field)
    if responses:
        return _including(count, _detail(told, "input_tokens_details", field), "output_tokens", told, field)
    read_, written = (_count(told, name, field) for name in _ANTHROPIC)
    return Usage(count + written, _count(told, "output_tokens", field), read_)


_ANTHROPIC = ("cache_read_input_tokens", "cache_creation_input_tokens")


def _including(prompt: int, cached: int, output: str, told: Mapping[str, Any], field: str) -> Usage:
    if cached > prompt:
        raise errors.Invalid(field, f"has {cached} cached tokens in a prompt of {prompt}")
    return Usage(prompt - cached, _count(told, output, field), cached)


def _detail(told: Mapping[str, Any], name: str, field: str) -> int:
    detail = told.get(name)
    if detail is None:
        return 0
    if not isinstance(detail, Mapping):
        raise errors.Invalid(f"{field}.{name}", "must be an object")
    return _count(detail, "cached_tokens", f"{field}.{name}")


def _count(told: Mapping[str, Any], name: str, field: str) -> int:
    value = told.get(name)
    if value is None:  # servers that have nothing to tell leave it out or say null
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_TOKENS:
        raise errors.Invalid(f"{field}.{name}", f"must be a whole number from 0 to {MAX_TOKENS}")
    return value
