"""docs/CONFIGURATION.md is made from the settings, and every setting says what it is."""

from pathlib import Path

from services.commands.settings import page
from shared.foundation.config import Settings
from shared.foundation.unknown_settings import unknown_variables


def test_the_page_of_the_configuration_is_what_the_settings_say(repository: Path) -> None:
    """`make configuration` writes it anew."""
    assert (repository / "docs" / "CONFIGURATION.md").read_text() == page()


def test_every_setting_has_a_description() -> None:
    assert [field for field, info in Settings.model_fields.items() if not info.description] == []


def test_an_unknown_variable_is_named_with_the_setting_that_it_resembles() -> None:
    environment = {"LOCI_PORT": "1", "LOCI_WINDOW_TLL": "2", "LOCI_QQQQQQQQQQQQ": "3", "PATH": "4"}
    assert unknown_variables(environment) == {"LOCI_WINDOW_TLL": "LOCI_WINDOW_TTL", "LOCI_QQQQQQQQQQQQ": None}
