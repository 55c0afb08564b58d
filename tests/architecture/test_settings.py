"""README's table of configuration lists every setting and nothing else."""

import re
from pathlib import Path

from shared.foundation.config import Settings

_NAME = re.compile(r"`(LOCI_[A-Z0-9_]+)`")


def test_readme_lists_every_setting_and_no_other(repository: Path) -> None:
    rows = [line for line in (repository / "README.md").read_text().splitlines() if line.startswith("|")]
    listed = [name for row in rows for name in _NAME.findall(row.split("|")[1])]
    settings = {f"LOCI_{field.upper()}" for field in Settings.model_fields}
    assert set(listed) == settings
    assert len(listed) == len(set(listed)), "a setting is listed twice"
