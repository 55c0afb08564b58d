"""SD1: the input of every provider excludes cached tokens, so that none is billed twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import errors
from shared.platform.spend import usage
from shared.platform.spend.charge import parse_turn_usage
from shared.platform.spend.metered_calls import split_usage
from shared.platform.spend.usage import Usage

_CHAT = {
    "prompt_tokens": 1200,
    "completion_tokens": 80,
    "total_tokens": 1280,
    "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 60},
}
_RESPONSES = {
    "input_tokens": 1200,
    "output_tokens": 80,
    "total_tokens": 1280,
    "input_tokens_details": {"cached_tokens": 1024},
    "output_tokens_details": {"reasoning_tokens": 60},
}
_ANTHROPIC = {
    "input_tokens": 176,
    "output_tokens": 80,
    "cache_read_input_tokens": 1024,
    "cache_creation_input_tokens": 0,
    "service_tier": "standard",
}
SAME = Usage(input=176, output=80, cached=1024)


@pytest.mark.parametrize(
    ("usage_object", "expected"),
    [
        (_CHAT, SAME),
        (_RESPONSES, SAME),
        (_ANTHROPIC, SAME),
        (_ANTHROPIC | {"cache_creation_input_tokens": 300}, Usage(476, 80, 1024)),
        ({"input_tokens": 7, "output_tokens": 3}, Usage(7, 3)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": None}, Usage(9, 4)),
        ({"prompt_tokens": 9, "completion_tokens": None}, Usage(9)),
        ({"prompt_tokens": 12, "total_tokens": 12}, Usage(12)),
        ({"total_tokens": 12}, Usage(12)),
        ({"prompt_tokens": 5, "completion_tokens": 0, "prompt_tokens_details": {}}, Usage(5)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(0, 0, 5)),
    ],
)
def test_sd1_each_providers_usage_is_parsed_with_cached_tokens_apart(
    usage_object: dict[str, Any], expected: Usage
) -> None:
    assert usage.parse_usage(usage_object) == expected


@pytest.mark.parametrize(
    ("usage_object", "field"),
    [
        ({}, "usage"),
        ({"tokens": 3}, "usage"),
        ({"prompt_tokens": -1}, "usage.prompt_tokens"),
        ({"prompt_tokens": 1.5}, "usage.prompt_tokens"),
        ({"prompt_tokens": True}, "usage.prompt_tokens"),
        ({"prompt_tokens": "12"}, "usage.prompt_tokens"),
        ({"prompt_tokens": 10**13}, "usage.prompt_tokens"),
        ({"prompt_tokens": 1, "completion_tokens": -2}, "usage.completion_tokens"),
        ({"prompt_tokens": 1, "prompt_tokens_details": 4}, "usage.prompt_tokens_details"),
        (
            {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": -4}},
            "usage.prompt_tokens_details.cached_tokens",
        ),
        ({"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2}}, "usage"),
        ({"input_tokens": 1, "input_tokens_details": {"cached_tokens": 2}}, "usage"),
        (_ANTHROPIC | {"input_tokens_details": {"cached_tokens": 2}}, "usage"),
    ],
)
def test_sd1_an_invalid_usage_is_refused_with_the_field(usage_object: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.Invalid) as raised:
        usage.parse_usage(usage_object)
    assert raised.value.violations[0].field == field


_counts = st.integers(0, 10**9)


@given(_counts, _counts, _counts)
def test_sd1_no_token_is_counted_twice_or_lost(uncached: int, cached: int, output: int) -> None:
    prompt = {"cached_tokens": cached}
    chat = {"prompt_tokens": uncached + cached, "completion_tokens": output, "prompt_tokens_details": prompt}
    responses = {
        "input_tokens": uncached + cached,
        "output_tokens": output,
        "input_tokens_details": prompt,
    }
    anthropic = {"input_tokens": uncached, "output_tokens": output, "cache_read_input_tokens": cached}
    for usage_object in (chat, responses, anthropic):
        assert usage.parse_usage(usage_object) == Usage(uncached, output, cached)
        assert usage.parse_usage(usage_object).total == uncached + cached + output


@given(_counts, _counts, st.lists(st.integers(1, 10**6), min_size=1, max_size=20))
def test_sd2_the_usage_of_one_call_is_split_to_the_last_token(
    uncached: int, cached: int, weights: list[int]
) -> None:
    parts = [part or Usage(0) for part in split_usage(Usage(uncached, 0, cached), weights)]
    assert sum(part.input for part in parts) == uncached
    assert sum(part.cached for part in parts) == cached
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part.input - uncached * weight / sum(weights)) <= 1


def test_sd1_a_turns_usage_may_carry_its_id_and_its_model() -> None:
    usage_object = parse_turn_usage(_CHAT | {"id": "chatcmpl-1", "model": "gpt-4o"})
    assert usage_object is not None
    assert (usage_object.usage_id, usage_object.model, usage_object.usage) == ("chatcmpl-1", "gpt-4o", SAME)
    without_id = parse_turn_usage(_CHAT)
    assert without_id is not None
    assert (without_id.usage_id, without_id.model) == (None, "unknown")
    assert parse_turn_usage(None) is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"id": 4}, "usage.id"),
        ({"id": " "}, "usage.id"),
        ({"id": "turn#4"}, "usage.id"),
        ({"model": ["m"]}, "usage.model"),
        ({"model": "m\n"}, "usage.model"),
    ],
)
def test_sd1_a_turns_usage_with_a_bad_id_or_model_is_refused(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.Invalid) as raised:
        parse_turn_usage(_CHAT | fields)
    assert raised.value.violations[0].field == field
