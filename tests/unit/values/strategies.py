"""Hypothesis strategies for values and collections. Floats are also drawn by their bits."""

import math

from hypothesis import strategies as st

from shared.conversation.values.collection import Block, Collection, Doc, List, Set, Tuple
from shared.conversation.values.tensor import DTYPES, Tensor
from shared.conversation.values.value import INT_MAX, INT_MIN, Bool, Float, Int, Obj, Primary, Str, Value
from shared.conversation.values.vector import Vec

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
_WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=64)

FLOATS = st.one_of(
    st.floats().map(Float),
    st.integers(0, 2**64 - 1).map(lambda bits: Float.of_bits(f"{bits:016x}")),
    # `st.floats` does not draw NaNs of all bit patterns.
    st.integers(0x7FF0_0000_0000_0001, 0x7FFF_FFFF_FFFF_FFFF).map(lambda bits: Float.of_bits(f"{bits:x}")),
)
PRIMARIES: st.SearchStrategy[Primary] = st.one_of(
    st.booleans().map(Bool), st.integers(INT_MIN, INT_MAX).map(Int), FLOATS, TEXTS.map(Str)
)
OBJECTS = st.builds(Obj, st.binary(), st.dictionaries(_WORDS, TEXTS, max_size=4))
VALUES: st.SearchStrategy[Value] = st.one_of(PRIMARIES, OBJECTS)

_KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)


@st.composite
def vecs(draw: st.DrawFn) -> Vec:
    """Draw a vec of any bytes: one vector or rows, with or without labels."""
    rows, dimension = draw(st.one_of(st.none(), st.integers(0, 4))), draw(st.integers(1, 4))
    shape = [dimension] if rows is None else [rows, dimension]
    size = 4 * math.prod(shape)
    labels = None
    if rows is not None and draw(st.booleans()):
        labels = draw(st.lists(_WORDS, min_size=rows, max_size=rows, unique=True))
    return Vec(shape, draw(st.binary(min_size=size, max_size=size)), labels)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Draw a tensor of any type, shape and bytes."""
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    width = {"bool": 1}.get(dtype) or int("".join(filter(str.isdigit, dtype))) // 8
    size = width * math.prod(shape)
    return Tensor(dtype, shape, draw(st.binary(min_size=size, max_size=size)))


COLLECTIONS: st.SearchStrategy[Collection] = st.one_of(
    st.dictionaries(_KEYS, PRIMARIES, max_size=5).map(Doc),
    st.dictionaries(_KEYS, VALUES, max_size=5).map(Block),
    st.lists(VALUES, max_size=5).map(Set),
    st.lists(VALUES, max_size=5).map(List),
    st.lists(VALUES, max_size=5).map(Tuple),
    vecs(),
    tensors(),
)
