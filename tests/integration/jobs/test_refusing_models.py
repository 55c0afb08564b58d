"""A job that a model delays says which way the model failed."""

from collections.abc import Callable

import pytest
from sqlalchemy import select

from shared.foundation import config
from shared.foundation.stages import ENRICH
from shared.jobs.table import job as job_table
from tests.conftest import running_gateway
from tests.draining import drain
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour


@pytest.mark.parametrize(
    ("behaviour", "reason_code"),
    [(Status(503), ["unavailable"]), (Status(401), ["key_refused"]), (Reply("not what was asked"), [])],
)
async def test_a_model_that_is_away_and_one_that_refuses_have_different_codes(
    make_settings: Callable[..., config.Settings],
    database: dict[str, str],
    models: ModelServer,
    tenant: str,
    behaviour: Behaviour,
    reason_code: list[str],
) -> None:
    models.chat_default = behaviour
    settings = make_settings(**database, llm_base_url=models.url, llm_model="m", job_backoff=60)
    async with running_gateway(settings, tenant) as gateway:
        saved = await gateway.client.post("/v1/memories", json={"content": "Ada lives in Lyon."})
        assert saved.status_code == 201, saved.text
        await drain(gateway.resources)
        async with gateway.resources.postgres.for_tenant(tenant) as tx:
            statement = select(job_table.c.reason_code).where(
                job_table.c.tenant == tenant, job_table.c.stage == ENRICH.name
            )
            assert (await tx.scalars(statement)).all() == reason_code
