"""Bring the schema up to date. The configuration is made here, so it works from a wheel too."""

from importlib.resources import files

from alembic import command
from alembic.config import Config


def upgrade() -> None:
    """Run every migration that has not run."""
    configuration = Config()
    configuration.set_main_option("script_location", str(files("migrations")))
    command.upgrade(configuration, "head")
