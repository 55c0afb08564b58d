"""Parse a provider's usage object so that no token is counted twice.

`Usage.input` never contains cached tokens. Providers disagree on that. Each shape is recognised by a
name that only it has:

    prompt_tokens            OpenAI chat and embeddings: includes prompt_tokens_details.cached_tokens
    input_tokens             OpenAI Responses if there is input_tokens_details: includes its
                             cached_tokens. Otherwise Anthropic: excludes cache_read_input_tokens
                             (cached) and cache_creation_input_tokens, which are added to the input
    total_tokens alone       embeddings of servers that report nothing else

Anthropic bills writes to its cache at 1.25 times the input price; here they cost the input price. A
tenant who needs the difference sets its own price. Reasoning tokens are part of the output of every
provider and are not counted separately.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.foundation import errors

MAX_TOKENS = 10**12


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one call. Tokens from the provider's cache are in `cached`, not in `input`."""

    input: int
    output: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        """The number of all tokens, which a budget in tokens counts."""
        return self.input + self.output + self.cached


def parse_usage(usage_object: Mapping[str, Any], field: str = "usage") -> Usage:
    """Parse a provider's usage object.

    Raise errors.Invalid naming `field` for an unknown shape, for a count that is no whole number from 0
    to 10^12, and for more cached tokens than the prompt has.
    """
    if "prompt_tokens" in usage_object:
        cached = _cached_count(usage_object, "prompt_tokens_details", field)
        uncached = _uncached_count(_count(usage_object, "prompt_tokens", field), cached, field)
        return Usage(uncached, _count(usage_object, "completion_tokens", field), cached)
    if "input_tokens" in usage_object:
        return _parse_input_tokens(usage_object, field)
    if "total_tokens" in usage_object:
        return Usage(_count(usage_object, "total_tokens", field))
    raise errors.Invalid(field, "must have prompt_tokens, input_tokens or total_tokens")


def _parse_input_tokens(usage_object: Mapping[str, Any], field: str) -> Usage:
    is_responses = "input_tokens_details" in usage_object
    if is_responses and any(name in usage_object for name in _ANTHROPIC):
        rule = f"must not have both input_tokens_details and {' or '.join(_ANTHROPIC)}"
        raise errors.Invalid(field, rule)
    count = _count(usage_object, "input_tokens", field)
    if is_responses:
        cached = _cached_count(usage_object, "input_tokens_details", field)
        return Usage(
            _uncached_count(count, cached, field), _count(usage_object, "output_tokens", field), cached
        )
    cache_reads, cache_writes = (_count(usage_object, name, field) for name in _ANTHROPIC)
    return Usage(count + cache_writes, _count(usage_object, "output_tokens", field), cache_reads)


_ANTHROPIC = ("cache_read_input_tokens", "cache_creation_input_tokens")


def _uncached_count(prompt: int, cached: int, field: str) -> int:
    if cached > prompt:
        raise errors.Invalid(field, f"has {cached} cached tokens in a prompt of {prompt}")
    return prompt - cached


def _cached_count(usage_object: Mapping[str, Any], name: str, field: str) -> int:
    detail = usage_object.get(name)
    if detail is None:
        return 0
    if not isinstance(detail, Mapping):
        raise errors.Invalid(f"{field}.{name}", "must be an object")
    return _count(detail, "cached_tokens", f"{field}.{name}")


def _count(usage_object: Mapping[str, Any], name: str, field: str) -> int:
    value = usage_object.get(name)
    if value is None:  # servers without a count omit it or send null
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_TOKENS:
        raise errors.Invalid(f"{field}.{name}", f"must be a whole number from 0 to {MAX_TOKENS}")
    return value


def parse_or_none(usage_object: Mapping[str, Any]) -> Usage | None:
    """Return the usage that an endpoint reports, or None if it reports none or an invalid one."""
    try:
        return parse_usage(usage_object)
    except errors.Invalid:
        return None
