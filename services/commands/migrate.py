"""Bring the schema of Postgres up to date. Alembic is configured here, because a wheel has no alembic.ini.

`migrations.env` refuses a database that an earlier development version made.
"""

from importlib.resources import files

from alembic import command
from alembic.config import Config


def upgrade() -> None:
    """Run every migration that has not run.

    Raise errors.Misconfigured if an earlier development version made the database.
    """
    command.upgrade(configuration(), "head")


def configuration() -> Config:
    """Return Alembic's configuration, which names the folder of the migrations."""
    alembic_config = Config()
    alembic_config.set_main_option("script_location", str(files("migrations")))
    return alembic_config
