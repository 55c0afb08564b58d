"""Wait for runs of dreams that workers execute."""

from tests.agent import Agent, Json, wait_until


async def wait_until_ended(agent: Agent, run_id: str, within: float = 20) -> Json:
    """Wait until a run has ended and return it. Fail after `within` seconds."""

    async def done() -> Json | None:
        run: Json = await agent.request("GET", f"/v1/dreams/{run_id}")
        return run if run["state"] == "done" else None

    ended_run = await wait_until(done, within)
    assert ended_run is not None
    return ended_run
