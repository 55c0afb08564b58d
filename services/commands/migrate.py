"""Bring the schema of Postgres up to date. The alembic configuration is built here, so a wheel needs no file.

`migrations.env` refuses a database that an earlier development version made.
"""

from importlib.resources import files

from alembic import command
from alembic.config import Config


def upgrade() -> None:
    """Run every migration that has not run.

    Raises errors.Misconfigured if an earlier development version made the database.
    """
    command.upgrade(configuration(), "head")


def configuration() -> Config:
    """Return alembic's configuration, which says where the migrations are."""
    alembic_config = Config()
    alembic_config.set_main_option("script_location", str(files("migrations")))
    return alembic_config
