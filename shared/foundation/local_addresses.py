"""Read the addresses of the databases that `loci up` started on this machine."""

import json
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from shared.foundation import errors

ADDRESSES_FILE = "addresses.json"


class LocalAddresses(PydanticBaseSettingsSource):
    """A source of settings: the file `addresses.json` of the data directory.

    The data directory is the one that the sources of higher priority name.
    """

    def __init__(self, settings_cls: type[BaseSettings], *higher: PydanticBaseSettingsSource) -> None:
        super().__init__(settings_cls)
        self._higher = higher

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """Return no value for a single field: the whole file is read at once by calling the source."""
        del field
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the addresses by field name; none if the file is missing."""
        data_dir: Any = Path(".loci")
        for source in reversed(self._higher):
            data_dir = source().get("data_dir", data_dir)
        file = Path(data_dir) / ADDRESSES_FILE
        try:
            return dict(json.loads(file.read_text()))
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError):
            raise errors.Misconfigured(
                f"{file} is not readable as JSON; stop the stack and delete it"
            ) from None


def with_database(url: str, database: int) -> str:
    """Return a Redis URL that selects another database number."""
    base, _, query = url.partition("?")
    scheme, _, rest = base.partition("://")
    if scheme == "unix":  # the path names the socket, so the database is an option
        return f"{base}?db={database}"
    return f"{scheme}://{rest.split('/')[0]}/{database}" + (f"?{query}" if query else "")
