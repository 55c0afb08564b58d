"""Any value, and any collection, as Hypothesis draws them: floats by their bits."""

import math

from hypothesis import strategies as some

from shared.conversation.values.collection import Block, Collection, Doc, List, Set, Tuple
from shared.conversation.values.tensor import DTYPES, Tensor
from shared.conversation.values.value import INT_MAX, INT_MIN, Bool, Float, Int, Obj, Primary, Str, Value
from shared.conversation.values.vector import Vec

TEXTS = some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
_WORDS = some.text(some.characters(categories=["L", "N"]), min_size=1, max_size=64)

FLOATS = some.one_of(
    some.floats().map(Float),
    some.integers(0, 2**64 - 1).map(lambda bits: Float.of_bits(f"{bits:016x}")),
    # Every NaN there is, which no draw of floats gives.
    some.integers(0x7FF0_0000_0000_0001, 0x7FFF_FFFF_FFFF_FFFF).map(lambda bits: Float.of_bits(f"{bits:x}")),
)
PRIMARIES: some.SearchStrategy[Primary] = some.one_of(
    some.booleans().map(Bool), some.integers(INT_MIN, INT_MAX).map(Int), FLOATS, TEXTS.map(Str)
)
OBJECTS = some.builds(Obj, some.binary(), some.dictionaries(_WORDS, TEXTS, max_size=4))
VALUES: some.SearchStrategy[Value] = some.one_of(PRIMARIES, OBJECTS)

_KEYS = some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)


@some.composite
def vecs(draw: some.DrawFn) -> Vec:
    """Draw a vec of any bytes, single or in rows, labelled or not."""
    rows, dimension = draw(some.one_of(some.none(), some.integers(0, 4))), draw(some.integers(1, 4))
    shape = [dimension] if rows is None else [rows, dimension]
    size = 4 * math.prod(shape)
    labels = None
    if rows is not None and draw(some.booleans()):
        labels = draw(some.lists(_WORDS, min_size=rows, max_size=rows, unique=True))
    return Vec(shape, draw(some.binary(min_size=size, max_size=size)), labels)


@some.composite
def tensors(draw: some.DrawFn) -> Tensor:
    """Draw a tensor of any type, shape and bytes."""
    dtype = draw(some.sampled_from(sorted(DTYPES)))
    shape = draw(some.lists(some.integers(0, 3), max_size=4))
    width = {"bool": 1}.get(dtype) or int("".join(filter(str.isdigit, dtype))) // 8
    size = width * math.prod(shape)
    return Tensor(dtype, shape, draw(some.binary(min_size=size, max_size=size)))


COLLECTIONS: some.SearchStrategy[Collection] = some.one_of(
    some.dictionaries(_KEYS, PRIMARIES, max_size=5).map(Doc),
    some.dictionaries(_KEYS, VALUES, max_size=5).map(Block),
    some.lists(VALUES, max_size=5).map(Set),
    some.lists(VALUES, max_size=5).map(List),
    some.lists(VALUES, max_size=5).map(Tuple),
    vecs(),
    tensors(),
)
