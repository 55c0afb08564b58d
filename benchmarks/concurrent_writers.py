"""How often a record is not found after several writers of it, over two gateways, were answered.

Every attempt sends its writes at the same moment. When all are answered, the record is read, and a
search for a word of its present content has to find it. Usage: python -m benchmarks.concurrent_writers
"""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Annotated

import httpx
import typer

from benchmarks import local_stack, machine, table
from services.local import programs
from services.local.ports import pick_free_port
from shared.foundation import config

Attempt = Callable[[list[httpx.AsyncClient], int], Awaitable[bool]]


async def _saves(clients: list[httpx.AsyncClient], attempt: int) -> bool:
    content = f"The lamp fact{attempt} stands in the hall."
    saves = [{"content": content, "tags": [f"tag{n}"], "enrich": False} for n in range(4)]
    await _all_succeed(
        client.post("/v1/memories", json=body) for client, body in zip(clients * 2, saves, strict=True)
    )
    return await _is_found(clients[0], "/v1/memories/search", f"fact{attempt}")


async def _changes(clients: list[httpx.AsyncClient], attempt: int) -> bool:
    body = {"content": f"The chair change{attempt} stands in the hall.", "enrich": False}
    path = f"/v1/memories/{(await clients[0].post('/v1/memories', json=body)).json()['id']}"
    changes = [{"content": f"The chair change{attempt} stands on floor{attempt}x{n}."} for n in range(2)]
    await _all_succeed(
        client.patch(path, json=change) for client, change in zip(clients, changes, strict=True)
    )
    present_content = (await clients[0].get(path)).json()["content"]
    return await _is_found(clients[0], "/v1/memories/search", present_content.split()[-1].rstrip("."))


async def _puts(clients: list[httpx.AsyncClient], attempt: int) -> bool:
    path = f"/v1/working/session/writers/key{attempt % 40}"
    values = [{"value": f"value{attempt}x{n}", "ttl_seconds": 600} for n in range(3)]
    await _all_succeed(
        client.put(path, json=value) for client, value in zip(clients * 2, values, strict=False)
    )
    return await _is_found(clients[0], "/v1/working/search", (await clients[0].get(path)).json()["value"])


async def _all_succeed(requests: Iterable[Awaitable[httpx.Response]]) -> None:
    for response in await asyncio.gather(*requests):
        response.raise_for_status()


async def _is_found(client: httpx.AsyncClient, path: str, word: str) -> bool:
    response = await client.post(path, json={"query": word})
    response.raise_for_status()
    return bool(response.json()["results"])


_SCENARIOS: dict[str, Attempt] = {
    "4 saves of one fact with different tags": _saves,
    "2 changes of one memory": _changes,
    "3 writes of one working-memory key": _puts,
}


async def _measure(urls: list[str], key: str, attempts: int) -> list[list[str]]:
    async with AsyncExitStack() as closing:
        clients = [
            await closing.enter_async_context(
                httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=30)
            )
            for url in urls
        ]
        rows = []
        for name, attempt in _SCENARIOS.items():
            misses = [number for number in range(attempts) if not await attempt(clients, number)]
            rows.append([name, str(attempts), str(len(misses))])
        return rows


@contextmanager
def _second_gateway(settings: config.Settings) -> Iterator[str]:
    port = pick_free_port()
    environment = {"LOCI_DATA_DIR": str(settings.data_dir), "LOCI_PORT": str(port)}
    with subprocess.Popen(programs.LOCI.gateway.argv, env={**os.environ, **environment}) as gateway:
        try:
            url = f"http://127.0.0.1:{port}"
            transport = httpx.HTTPTransport(retries=10)  # it waits longer after each refused connection
            with httpx.Client(transport=transport) as client:
                client.get(f"{url}/readyz").raise_for_status()
            yield url
        finally:
            gateway.terminate()


def main(attempts: Annotated[int, typer.Option(help="Attempts of each kind.")] = 30) -> None:
    """Print how often a record was not found after its writers were answered."""
    print(machine.describe())
    with local_stack.running() as running, _second_gateway(running.settings) as url:
        rows = asyncio.run(_measure([running.url, url], running.key, attempts))
    table.show(["writers at once", "attempts", "not found"], rows)


if __name__ == "__main__":
    typer.run(main)
