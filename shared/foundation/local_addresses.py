"""Where the stack on this machine wrote the addresses of its databases."""

import json
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from shared.foundation import errors

ADDRESSES_FILE = "addresses.json"


class _LocalAddresses(PydanticBaseSettingsSource):
    """Read `addresses.json` of the data directory that the higher sources name."""

    def __init__(self, settings_cls: type[BaseSettings], *higher: PydanticBaseSettingsSource) -> None:
        super().__init__(settings_cls)
        self._higher = higher

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        del field
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        data_dir: Any = Path(".loci")
        for source in reversed(self._higher):
            data_dir = source().get("data_dir", data_dir)
        try:
            return dict(json.loads((Path(data_dir) / ADDRESSES_FILE).read_text()))
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError):
            file = Path(data_dir) / ADDRESSES_FILE
            raise errors.Misconfigured(
                f"{file} is not readable as JSON; stop the stack and delete it"
            ) from None


def _with_database(url: str, database: int) -> str:
    base, _, query = url.partition("?")
    scheme, _, rest = base.partition("://")
    if scheme == "unix":  # its path is the socket; the database is an option
        return f"{base}?db={database}"
    return f"{scheme}://{rest.split('/')[0]}/{database}" + (f"?{query}" if query else "")
