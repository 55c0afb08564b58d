"""MO2: `loci up` starts nothing whose workers could not work, and says which setting is to blame."""

from pathlib import Path

import pytest

from services.commands import run
from shared.foundation import errors


@pytest.mark.parametrize(
    ("variable", "value"), [("LOCI_LLM_TIMEOUT", "150"), ("LOCI_PRICES_FILE", "/nowhere/prices.toml")]
)
def test_a_stack_whose_workers_could_not_work_is_not_started(
    variable: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = tmp_path / "data"
    monkeypatch.setenv("LOCI_DATA_DIR", str(data_dir))
    monkeypatch.setenv("LOCI_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv(variable, value)
    with pytest.raises(errors.Misconfigured, match=variable):
        run.stack()
    assert not data_dir.exists()
