"""Bring the schema up to date. The configuration is made here, so it works from a wheel too."""

from importlib.resources import files

from alembic import command
from alembic.config import Config


def upgrade() -> None:
    """Run every migration that has not run."""
    command.upgrade(configuration(), "head")


def configuration() -> Config:
    """Return what alembic needs to know to find the migrations."""
    made = Config()
    made.set_main_option("script_location", str(files("migrations")))
    return made
