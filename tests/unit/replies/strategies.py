"""Replies as no model should write them."""

from hypothesis import strategies as st

_FRAGMENTS = [
    "[", "]", "{", "}", '"', ",", ":", "\\", "\n", " ", "null", "NaN", "-", "0.", "1e999", "</think>",
    "<think>", "```json\n", "```", "[]", '{"content": "x"}', '"tags": []', "Sure!", "\x00", "\ud800",
]  # fmt: skip
spoilt = st.one_of(st.text(), st.lists(st.sampled_from(_FRAGMENTS)).map("".join))
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=9)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=20,
)
