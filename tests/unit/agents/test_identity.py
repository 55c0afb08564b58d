"""SE8: the identity of an agent is a hash of its public key and its identity document."""

import hashlib

from hypothesis import assume, given
from hypothesis import strategies as st

from shared.platform.agents.profile import identity_of

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)


def test_the_identity_is_the_sha256_that_the_module_describes() -> None:
    joined = b"loci agent identity 1\n" + bytes([0, 0, 0, 0, 0, 0, 0, 4]) + "né".encode() + b"!" + b"doc"
    assert identity_of("né!", "doc") == hashlib.sha256(joined).hexdigest()


@given(texts, texts)
def test_the_same_key_and_document_give_the_same_identity(key: str, document: str) -> None:
    assert identity_of(key, document) == identity_of(key, document)
    assert len(identity_of(key, document)) == 64


@given(texts, texts, st.integers(1, 20))
def test_bytes_moved_from_the_key_to_the_document_give_another_identity(
    key: str, document: str, count: int
) -> None:
    whole = key + document
    assume(count <= len(key))
    assert identity_of(key, document) != identity_of(whole[: len(key) - count], whole[len(key) - count :])


@given(texts, texts, texts, texts)
def test_different_pairs_have_different_identities(a: str, b: str, c: str, d: str) -> None:
    assert ((a, b) == (c, d)) == (identity_of(a, b) == identity_of(c, d))
