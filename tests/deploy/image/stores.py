"""The databases and the models that the containers use, on 127.0.0.1."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from services.local.qdrant import Qdrant
from services.local.redis import Redis
from shared.foundation.local_addresses import with_database
from tests.deploy import managed_postgres
from tests.deploy.image.pods import Secrets
from tests.deploy.managed_postgres import ManagedPostgres
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

FLOWER_PASSWORD = "flowersecret"


@dataclass(frozen=True)
class Stores:
    """Addresses, and the stand-in for models, which finds nothing to extract."""

    postgres: ManagedPostgres
    redis_url: str
    qdrant_url: str
    models: ModelServer

    def secrets(self) -> Secrets:
        """Return the values of the secrets that deploy/README.md creates."""
        return {
            ("loci-migrate", "postgres-url"): self.postgres.url("owner"),
            ("loci-stores", "postgres-url"): self.postgres.url("login"),
            ("loci-stores", "redis-url"): self.redis_url,
            ("loci-stores", "broker-url"): with_database(self.redis_url, 1),
            ("loci-flower", "password"): FLOWER_PASSWORD,
        }

    def settings(self) -> dict[str, str]:
        """Return the settings that an overlay would add."""
        return {
            "LOCI_QDRANT_URL": self.qdrant_url,
            "LOCI_LLM_BASE_URL": self.models.url,
            "LOCI_LLM_MODEL": "stand-in",
            "LOCI_JUDGE_CALIBRATION_TOKENS": "0",
            "LOCI_EMBEDDING_BASE_URL": self.models.url,
            "LOCI_EMBEDDING_MODEL": "stand-in",
        }


@contextmanager
def running(folder: Path) -> Iterator[Stores]:
    """Run Postgres with the roles of an administrator who is no superuser, Redis, Qdrant and the models."""
    with ExitStack() as stack:
        postgres = stack.enter_context(managed_postgres.running(folder / "postgres"))
        redis, qdrant = Redis(folder / "redis"), Qdrant(folder / "qdrant")
        for server in (redis, qdrant):
            stack.callback(server.stop)
            server.start()
        models = stack.enter_context(ModelServer(chat_default=Reply("[]")))
        yield Stores(postgres, redis.url, qdrant.url, models)
