"""MO3: a prompt has at most a number of tokens; what does not fit waits its turn."""

from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import config, prompt_budget
from shared.infra.language_model import open_language_model


@given(st.lists(st.text(max_size=30)), st.integers(1, 60))
def test_what_is_taken_fits_and_is_the_beginning(texts: list[str], max_tokens: int) -> None:
    taken = prompt_budget.take_fitting(texts, str, max_tokens)
    assert taken == texts[: len(taken)]
    assert bool(taken) == bool(texts)
    if len(taken) > 1:
        assert sum(map(prompt_budget.tokens_of, taken)) <= max_tokens
    if len(taken) < len(texts):
        assert sum(map(prompt_budget.tokens_of, texts[: len(taken) + 1])) > max_tokens


def test_the_number_of_tokens_depends_on_the_model() -> None:
    values = {"llm_base_url": "http://127.0.0.1:9/v1", "llm_prompt_tokens_by_model": {"small": 7000}}
    for name, expected in (("small", 7000), ("other", 50_000)):
        model = open_language_model(config.load(llm_model=name, llm_prompt_tokens=50_000, **values))
        assert model is not None
        assert model.max_prompt_tokens == expected
