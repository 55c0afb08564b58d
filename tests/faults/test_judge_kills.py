"""Workers measure the judge without any command; one that is killed costs only what it was asking."""

import asyncio
from collections import Counter
from collections.abc import Callable

from shared.verification import calibration
from tests.faults.history import eventually
from tests.faults.processes import Fleet
from tests.standins.behaviours import Hang, Reply
from tests.standins.judge_server import JudgeServer


async def test_the_judge_is_measured_to_the_end_and_no_saved_memory_waits_for_it(
    make_fleet: Callable[..., Fleet], tenant: str
) -> None:
    with JudgeServer() as server:
        server.other_reply = Reply("[]")
        hang = Hang()
        server.chat_replies.extend([server.chat_default, server.chat_default, hang])
        fleet = make_fleet(
            llm_base_url=server.url,
            llm_model="m",
            judge_calibration_tokens=1_000_000,
            llm_timeout=12,
            job_lease=15,
        )
        fleet.serve()
        fleet.start("beat")
        worker = fleet.start("work")
        await asyncio.to_thread(server.wait_for_calls, 3, 60)
        async with await fleet.client(tenant) as client:
            await client.post("/v1/memories", json={"content": "Ada lives in Graz."})

            async def nothing_is_pending() -> bool:
                return not any((await client.get("/v1/status")).json()["pending"].values())

            async def is_trusted() -> bool:
                return bool((await client.get("/v1/models")).json()["models"][1]["trusted"])

            await eventually(nothing_is_pending, 10, "the memory waits for the judge")
            worker.kill()
            hang.release.set()
            for _ in range(2):
                fleet.start("work")
            await eventually(is_trusted, 60, fleet.log[-3000:])
        times = Counter(claim.statement for claim in server.asked)
        assert len(times) == len(calibration.read())
        assert sorted(times.values())[:-20] == [1] * (len(times) - 20)
        assert len(server.asked) <= len(times) + 20
