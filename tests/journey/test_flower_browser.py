"""Flower as an operator sees it, in a real browser: the scope of each run, the tasks, and the workers."""

import json
import struct
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright

from shared.foundation.stages import DreamPass, task_of_pass
from tests.agent import Agent, random_word, wait_until
from tests.journey import chromium
from tests.journey.chromium import Unobtainable
from tests.journey.stack import ProcessStack

_PASSES = {task_of_pass(name) for name in DreamPass}
_MIN_DIFFERENT_LINES = 100
"""A page with a table has more different lines of pixels than this; an empty page has a handful."""


@dataclass(frozen=True)
class Flower:
    """The pages of Flower in a browser that is logged in."""

    page: Page
    url: str

    async def tasks(self, words: str) -> dict[str, dict[str, str]]:
        """Search the page of tasks. Return the text of each column, by the name of the task."""
        await self.page.goto(f"{self.url}/tasks")
        await self.page.locator("input[type=search]").fill(words)
        await self.page.locator("#tasks-table tbody tr", has_text=words).first.wait_for()
        return {row["name"]: row for row in await self.page.evaluate(_ROWS)}

    async def workers(self) -> list[str]:
        """Return the text of each row of the page of workers."""
        await self.page.goto(f"{self.url}/")
        rows = self.page.locator("table tbody tr", has_text="celery@")
        await rows.first.wait_for()
        return await rows.all_inner_texts()


_ROWS = """() => {
    const table = document.querySelector("#tasks-table");
    const names = [...table.querySelectorAll("thead th[data-column]")].map(header => header.dataset.column);
    return [...table.querySelectorAll("tbody tr")].map(row =>
        Object.fromEntries([...row.cells].map((cell, index) => [names[index], cell.textContent.trim()])));
}"""


@pytest.fixture
async def flower(stack_with_models: ProcessStack) -> AsyncIterator[Flower]:
    try:
        browser = chromium.obtain()
    except Unobtainable as error:
        pytest.skip(str(error))
    file = stack_with_models.running.flower_password_file
    assert file is not None
    async with async_playwright() as playwright:
        # Without a sandbox, because root has none. Only a page of this stack is opened.
        chromium_browser = await playwright.chromium.launch(
            executable_path=browser.path, args=["--no-sandbox"], env={**browser.environment}
        )
        page = await chromium_browser.new_page(
            http_credentials={
                "username": stack_with_models.running.flower_user,
                "password": file.read_text().strip(),
            },
            viewport={"width": 1600, "height": 1000},
        )
        yield Flower(page, stack_with_models.running.flower_url)
        await chromium_browser.close()


async def test_a_run_started_over_http_is_found_in_flower_by_its_id(
    flower: Flower, agent_with_model: Agent, dream_replies: None, tmp_path: Path
) -> None:
    for place in ("shed", "yard"):
        await agent_with_model.save(f"Ada's bicycle stands in the {place}.", agent_id="support", enrich=False)
    body = {"agent_id": "support"}
    run_id = (await agent_with_model.request("POST", "/v1/dreams", json=body, status=HTTPStatus.CREATED))[
        "id"
    ]

    async def ended_in_flower() -> dict[str, dict[str, str]] | None:
        tasks = await flower.tasks(run_id)
        successful = {name for name, row in tasks.items() if row["state"] == "SUCCESS"}
        return tasks if successful >= _PASSES else None

    tasks = await wait_until(ended_in_flower)

    assert tasks is not None
    assert set(tasks) == _PASSES
    for row in tasks.values():
        for part in (
            f"'tenant': '{agent_with_model.tenant}'",
            "'agent': 'support'",
            "'user': None",
            f"'run': '{run_id}'",
        ):
            assert part in row["kwargs"]
    picture = tmp_path / "flower.png"
    await flower.page.screenshot(path=picture)
    assert len(_lines(picture.read_bytes())) > _MIN_DIFFERENT_LINES


async def test_batches_show_how_many_jobs_were_due_and_claimed_per_tenant(
    flower: Flower, agent_with_model: Agent
) -> None:
    for _ in range(3):
        await agent_with_model.save(f"Hello. The {random_word()} is green.")
    await agent_with_model.wait_until_idle()

    async def are_listed() -> bool:
        tasks = await flower.tasks(agent_with_model.tenant)
        return {"enrichment.enrich_pending", "embedding.embed_pending"} <= set(tasks)

    await wait_until(are_listed)
    for row in (await flower.tasks(agent_with_model.tenant)).values():
        assert "'due_jobs': " in row["kwargs"]
        result = json.loads(row["result"].replace("'", '"'))
        assert 0 < result["tenants"][agent_with_model.tenant] <= result["claimed"]


async def test_the_workers_page_shows_who_is_online_and_how_much_they_did(
    flower: Flower, agent_with_model: Agent
) -> None:
    await agent_with_model.save(f"Hello. The {random_word()} is green.")
    await agent_with_model.wait_until_idle()
    [worker] = await flower.workers()
    assert "Online" in worker
    assert max(int(figure) for figure in worker.split() if figure.isdigit()) > 0


async def test_flower_shows_nothing_without_its_password(
    flower: Flower, stack_with_models: ProcessStack
) -> None:
    async with stack_with_models.client() as client:
        for page in ("/", "/tasks", "/api/tasks", "/broker"):
            response = await client.get(f"{flower.url}{page}")
            assert response.status_code == HTTPStatus.UNAUTHORIZED


def _lines(png: bytes) -> set[bytes]:
    """Return the different lines of pixels of a PNG file."""
    width, height, depth, colour = struct.unpack(">IIBB", png[16:26])
    assert (depth, colour in {2, 6}) == (8, True)
    compressed, position = b"", 8
    while position < len(png):
        size, kind = struct.unpack(">I4s", png[position : position + 8])
        compressed += png[position + 8 : position + 8 + size] if kind == b"IDAT" else b""
        position += size + 12
    pixels = zlib.decompress(compressed)
    stride = len(pixels) // height
    assert stride == 1 + width * {2: 3, 6: 4}[colour]
    return {pixels[start : start + stride] for start in range(0, len(pixels), stride)}
