"""MM7: whatever is uploaded gets a clear answer over HTTP, and the worker that reads it goes on."""

import asyncio
import io
import time
import zipfile
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import httpx

from benchmarks import process_table
from shared.memory.documents.document import MAX_FILE_BYTES
from tests.agent import Json
from tests.faults.processes import Fleet
from tests.unit.parsing import files

_PDF_PAGES = 500
_BOMB_BYTES = 1 << 30
_MOST_MIB = 400
"""What the worker itself may use; a process of its own, with a limit of its own, reads each file."""
_WITHIN = 90.0
_SCRIPTS = "<p>The pier page.</p><script>steal('pier')</script><img onerror=steal() src=x>"
_WORDS = {"long.pdf": "quay", "page.html": "pier", "lie.pdf": "jetty", "lie.txt": "mole"}


async def test_a_file_of_any_kind_is_read_or_refused_with_its_reason_and_the_worker_goes_on(
    make_fleet: Callable[..., Fleet], tenant: str
) -> None:
    fleet = make_fleet(job_lease=60)
    fleet.serve()
    fleet.start("beat")
    worker = fleet.start("work")
    async with await fleet.client(tenant) as client:
        to_refuse = _refused()
        refused = {name: await _upload(client, name, *file[:2]) for name, file in to_refuse.items()}
        refused["bomb.docx"] = await _upload(client, "bomb.docx", "application/zip", _bomb())
        taken = {name: await _upload(client, name, *file) for name, file in _taken().items()}
        assert await _status_of_too_much(client) == b"413"
        expected = {name: (file[2], file[3]) for name, file in to_refuse.items()}
        expected["bomb.docx"] = ("too_large", "unpack")
        for name, (reason_code, word) in expected.items():
            document = await _until_done(client, refused[name], fleet)
            assert (document["state"], document["reason_code"]) == ("failed", reason_code), (name, document)
            assert word in document["reason"], (name, document)
        for name, document_id in taken.items():
            document = await _until_done(client, document_id, fleet)
            assert document["state"] == "ready", (name, document)
            results = await _search(client, _WORDS[name])
            assert {result["document_id"] for result in results} == {document_id}, name
        assert await _search(client, "steal") == []
    assert worker.code is None, "the worker has ended"
    assert max(map(_peak_mib, process_table.family(worker.pid))) < _MOST_MIB


async def _upload(client: httpx.AsyncClient, name: str, media_type: str, content: bytes) -> str:
    response = await client.post("/v1/documents", files={"file": (name, content, media_type)})
    assert response.status_code == HTTPStatus.ACCEPTED, response.text
    return str(response.json()["id"])


async def _search(client: httpx.AsyncClient, query: str) -> list[Json]:
    results: list[Json] = (await client.post("/v1/documents/search", json={"query": query})).json()["results"]
    return results


async def _until_done(client: httpx.AsyncClient, document_id: str, fleet: Fleet) -> Json:
    deadline = time.monotonic() + _WITHIN
    while True:
        document: Json = (await client.get(f"/v1/documents/{document_id}")).json()
        if document["state"] in {"ready", "failed"}:
            return document
        assert time.monotonic() < deadline, (document, fleet.log[-2000:])
        await asyncio.sleep(0.05)


async def _status_of_too_much(client: httpx.AsyncClient) -> bytes:
    """Announce 50 MiB, send a MiB more than may be sent, and return the status that comes then."""
    url = client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    part = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    head = (
        f"POST /v1/documents HTTP/1.1\r\nhost: {url.host}\r\ncontent-length: {50 << 20}\r\n"
        f"authorization: {client.headers['authorization']}\r\n"
        "content-type: multipart/form-data; boundary=b\r\n\r\n"
    )
    writer.write(head.encode() + part + b"x" * (MAX_FILE_BYTES + (1 << 20)))
    line = await asyncio.wait_for(reader.readline(), 20)
    writer.close()
    return line.split()[1]


def _bomb() -> bytes:
    """Return a DOCX document of a MiB whose text is a GiB."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w") as member:
            for _ in range(_BOMB_BYTES >> 20):
                member.write(bytes(1 << 20))
    return file.getvalue()


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def _refused() -> dict[str, tuple[str, bytes, str, str]]:
    """Return name, declared type, content, reason code and a word of the reason."""
    sheet = files.archive_of({"[Content_Types].xml": "<Types/>", "xl/workbook.xml": "<workbook/>"})
    return {
        "blank.txt": ("text/plain", b" \n\t ", "no_text", "empty"),
        "picture.pdf": ("application/pdf", files.picture_pdf(), "no_text", "scanned"),
        "secret.pdf": ("application/pdf", files.pdf(["x"], password="open sesame"), "encrypted", "PDF"),
        "half.pdf": ("application/pdf", files.pdf(["text"])[:300], "damaged", "PDF"),
        "sheet.txt": ("text/plain", sheet, "unsupported", "spreadsheet"),
        "photo.txt": ("text/plain", b"\x89PNG\r\n\x1a\n" + bytes(900), "unsupported", "PNG"),
        "letter.docx": ("application/pdf", b"PK\x03\x04 and nothing else", "damaged", "ZIP"),
        "export.zip": (
            "application/zip",
            files.archive_of({"users.json": "[]", "channels.json": "[]", "../../etc/passwd": "[]"}),
            "damaged",
            "name",
        ),
    }


def _taken() -> dict[str, tuple[str, bytes]]:
    """Return what is read whatever is said of it: name, declared type, content."""
    return {
        "long.pdf": (
            "application/pdf",
            files.pdf([f"Page {number} of the quay book." for number in range(1, _PDF_PAGES + 1)]),
        ),
        "page.html": ("text/html", _SCRIPTS.encode()),
        "lie.pdf": ("application/pdf", b"This text about the jetty only says that it is a PDF."),
        "lie.txt": ("text/plain", files.pdf(["A PDF about the mole that says it is text."])),
    }
