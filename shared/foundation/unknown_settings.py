"""Find variables that begin with `LOCI_` and are no setting: misspelt, or of another version."""

import difflib
from collections.abc import Mapping

from shared.foundation.config import Settings

PREFIX = "LOCI_"


def variable_of(field: str) -> str:
    """Return the environment variable of a field of Settings."""
    return PREFIX + field.upper()


def unknown_variables(environment: Mapping[str, str]) -> dict[str, str | None]:
    """Return each unknown variable with the setting that it most resembles, or None."""
    settings = [variable_of(field) for field in Settings.model_fields]
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in settings)
    return {name: next(iter(difflib.get_close_matches(name, settings, n=1)), None) for name in unknown}


def describe(variable: str, nearest: str | None) -> str:
    """Say in a sentence what is wrong with an unknown variable."""
    hint = f"; did you mean {nearest}?" if nearest else ""
    return f"{variable} is not a setting{hint}"
