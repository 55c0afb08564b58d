"""MM7: clients at once: who sends too much, who searches during a replacement, storage that is away."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus

from shared.foundation import config
from shared.memory.documents.document import MAX_FILE_BYTES
from tests.integration.documents.conftest import DOCUMENTS, Library, opened_library, paragraphs

FORM = {"content-type": "multipart/form-data; boundary=b"}
PART = 1024 * 1024


async def test_of_clients_at_once_those_that_send_too_much_are_refused_while_they_send(
    library: Library,
) -> None:
    sent = [0] * 4

    async def endless(client: int) -> AsyncIterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        while sent[client] < 2 * MAX_FILE_BYTES:
            sent[client] += PART
            yield b"x" * PART

    async def send_too_much(client: int) -> int:
        response = await library.gateway.client.post(DOCUMENTS, content=endless(client), headers=FORM)
        return response.status_code

    codes = asyncio.gather(*map(send_too_much, range(4)))
    others = [await library.send(f"The office opens at {hour}.") for hour in range(4)]
    assert await codes == [HTTPStatus.REQUEST_ENTITY_TOO_LARGE] * 4
    assert max(sent) <= MAX_FILE_BYTES + 2 * PART
    assert [response.status_code for response in others] == [HTTPStatus.ACCEPTED] * 4
    assert (await library.rows())["document_file"] == 4


async def test_whoever_searches_while_a_text_is_replaced_finds_one_whole_version(library: Library) -> None:
    await library.add(paragraphs("version0 harbour", 3), source="a")
    is_over, seen = False, list[tuple[str, ...]]()

    async def search() -> None:
        while not is_over:
            texts = await library.texts("harbour", limit=20)
            seen.append(tuple(re.findall(r"version\d+", " ".join(texts))))

    searches = [asyncio.create_task(search()) for _ in range(2)]
    for number in range(1, 6):
        await library.add(paragraphs(f"version{number} harbour", 3), source="a")
    is_over = True
    await asyncio.gather(*searches)
    assert set(seen) <= {(f"version{number}",) * 3 for number in range(6)}
    assert len(set(seen)) > 1


async def test_while_the_bucket_is_away_a_large_file_is_refused_and_a_small_one_is_taken(
    make_settings: Callable[..., config.Settings], tenant: str, unused_url: str
) -> None:
    away = {"s3_bucket": "files", "s3_endpoint": unused_url, "s3_timeout": 1, "document_postgres_bytes": 100}
    key = {"s3_access_key_id": "a", "s3_secret_access_key": "b"}
    async with opened_library(make_settings(apart=True, **away, **key), tenant) as library:
        refused = await library.send("x" * 101)
        assert refused.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        assert "s3" in refused.json()["detail"]
        assert (await library.add("The office opens at nine."))["state"] == "ready"
        listed = await library.agent.request("GET", DOCUMENTS)
    assert [document["size_bytes"] for document in listed["results"]] == [25]
