"""Receiving an upload: chunks are joined in order, and its limits are enforced."""

import io
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import errors
from shared.lifecycle.transfer import ndjson, upload


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def receive(*parts: bytes) -> bytes:
    spool = io.BytesIO()
    await upload.receive_upload(chunks(*parts), spool)
    return spool.read()


async def test_chunks_are_joined_in_order() -> None:
    assert await receive(b"ab", b"", b"c\nd", b"\n") == b"abc\nd\n"


async def test_an_upload_of_the_maximum_size_is_received_and_one_byte_more_is_refused() -> None:
    lines = (b"x" * (ndjson.MAX_BYTES - 1) + b"\n") * 32
    assert len(await receive(lines)) == upload.MAX_BYTES
    with pytest.raises(errors.TooLarge, match="the import"):
        await receive(lines, b"\n")


async def test_a_line_that_is_too_long_is_named_by_number_wherever_chunks_begin() -> None:
    with pytest.raises(errors.TooLarge, match=r"^line 3:"):
        await receive(b"a\n", b"b\nc", b"c" * ndjson.MAX_BYTES, b"c")


async def test_too_many_lines_are_refused() -> None:
    assert await receive(b"\n" * upload.MAX_LINES)
    with pytest.raises(errors.TooLarge, match=f"{upload.MAX_LINES} lines"):
        await receive(b"\n" * upload.MAX_LINES, b"\n")


@given(st.lists(st.text("ab", max_size=9).map(str.encode), max_size=9))
def test_the_lines_of_a_file_are_yielded_and_long_ones_are_truncated(raw_lines: list[bytes]) -> None:
    lines = list(upload.lines_of(io.BytesIO(b"".join(line + b"\n" for line in raw_lines)), 5))
    assert [line.rstrip(b"\n") for line in lines] == [line[:6] for line in raw_lines]
    assert [len(line.rstrip(b"\n")) > 5 for line in lines] == [len(line) > 5 for line in raw_lines]
