"""Flower as an operator sees it, in a real browser: whose night it was, what was worked off, who works."""

import json
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright

from shared.foundation.stages import DreamPass
from tests.journey import chromium
from tests.journey.agent import Agent, until, word
from tests.journey.chromium import Unobtainable
from tests.journey.dreaming import by_night
from tests.journey.house import TestStack
from tests.journey.rewriting import by_sentence
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

_PASSES = {f"dream.{name.value}" for name in DreamPass}
_INK = 100
"""Different lines of pixels that a page with a table has at least; an empty one has a handful."""


@dataclass(frozen=True)
class Flower:
    """Flower's pages in a browser that has logged in."""

    page: Page
    url: str

    async def tasks(self, words: str) -> dict[str, dict[str, str]]:
        """Search the page of tasks; return what each column says, by the name of the task."""
        await self.page.goto(f"{self.url}/tasks")
        await self.page.locator("input[type=search]").fill(words)
        await self.page.locator("#tasks-table tbody tr", has_text=words).first.wait_for()
        return {row["name"]: row for row in await self.page.evaluate(_ROWS)}

    async def workers(self) -> list[str]:
        """Return what the page of workers says of each."""
        await self.page.goto(f"{self.url}/")
        rows = self.page.locator("table tbody tr", has_text="celery@")
        await rows.first.wait_for()
        return await rows.all_inner_texts()


_ROWS = """() => {
    const table = document.querySelector("#tasks-table");
    const names = [...table.querySelectorAll("thead th[data-column]")].map(one => one.dataset.column);
    return [...table.querySelectorAll("tbody tr")].map(row =>
        Object.fromEntries([...row.cells].map((cell, place) => [names[place], cell.textContent.trim()])));
}"""


@pytest.fixture
async def flower(modelled: TestStack) -> AsyncIterator[Flower]:
    try:
        browser = chromium.obtain()
    except Unobtainable as why:
        pytest.skip(str(why))
    file = modelled.running.flower_password_file
    assert file is not None
    async with async_playwright() as playwright:
        # Without a sandbox: root has none, and the only page it opens is ours.
        opened = await playwright.chromium.launch(
            executable_path=browser.path, args=["--no-sandbox"], env={**browser.environment}
        )
        page = await opened.new_page(
            http_credentials={
                "username": modelled.running.flower_user,
                "password": file.read_text().strip(),
            },
            viewport={"width": 1600, "height": 1000},
        )
        yield Flower(page, modelled.running.flower_url)
        await opened.close()


@pytest.fixture
def asleep(model: ModelServer) -> Iterator[None]:
    """Let the stand-in answer the passes too."""
    model.chat_default = Reply(by_night(by_sentence))
    yield
    model.chat_default = Reply(by_sentence)


async def test_a_run_started_over_http_is_found_in_flower_by_its_id(
    flower: Flower, thinker: Agent, asleep: None, tmp_path: Path
) -> None:
    for place in ("shed", "yard"):
        await thinker.save(f"Ada's bicycle stands in the {place}.", agent_id="support", enrich=False)
    body = {"agent_id": "support"}
    run = (await thinker.ask("POST", "/v1/dreams", json=body, status=HTTPStatus.CREATED))["id"]

    async def ended_in_flower() -> dict[str, dict[str, str]] | None:
        found = await flower.tasks(run)
        return (
            found if {name for name, row in found.items() if row["state"] == "SUCCESS"} >= _PASSES else None
        )

    shown = await until(ended_in_flower)

    assert shown is not None
    assert set(shown) == _PASSES
    for row in shown.values():
        for told in (
            f"'tenant': '{thinker.tenant}'",
            "'agent': 'support'",
            "'user': None",
            f"'run': '{run}'",
        ):
            assert told in row["kwargs"]
    picture = tmp_path / "flower.png"
    await flower.page.screenshot(path=picture)
    assert len(_lines(picture.read_bytes())) > _INK


async def test_batches_show_how_many_jobs_were_due_and_claimed_per_tenant(
    flower: Flower, thinker: Agent
) -> None:
    for _ in range(3):
        await thinker.save(f"Hello. The {word()} is green.")
    await thinker.settled()

    async def told() -> bool:
        found = await flower.tasks(thinker.tenant)
        return {"enrichment.enrich_pending", "embedding.embed_pending"} <= set(found)

    await until(told)
    for row in (await flower.tasks(thinker.tenant)).values():
        assert "'due_jobs': " in row["kwargs"]
        result = json.loads(row["result"].replace("'", '"'))
        assert 0 < result["tenants"][thinker.tenant] <= result["claimed"]


async def test_the_workers_page_shows_who_is_online_and_how_much_they_did(
    flower: Flower, thinker: Agent
) -> None:
    await thinker.save(f"Hello. The {word()} is green.")
    await thinker.settled()
    [worker] = await flower.workers()
    assert "Online" in worker
    assert max(int(figure) for figure in worker.split() if figure.isdigit()) > 0


async def test_flower_shows_nothing_without_its_password(flower: Flower, modelled: TestStack) -> None:
    async with modelled.client() as anyone:
        for page in ("/", "/tasks", "/api/tasks", "/broker"):
            answer = await anyone.get(f"{flower.url}{page}")
            assert answer.status_code == HTTPStatus.UNAUTHORIZED


def _lines(png: bytes) -> set[bytes]:
    """Return the different lines of a picture, as they are packed."""
    width, height, depth, colour = struct.unpack(">IIBB", png[16:26])
    assert (depth, colour in {2, 6}) == (8, True)
    packed, place = b"", 8
    while place < len(png):
        size, kind = struct.unpack(">I4s", png[place : place + 8])
        packed += png[place + 8 : place + 8 + size] if kind == b"IDAT" else b""
        place += size + 12
    pixels = zlib.decompress(packed)
    stride = len(pixels) // height
    assert stride == 1 + width * {2: 3, 6: 4}[colour]
    return {pixels[at : at + stride] for at in range(0, len(pixels), stride)}
