"""Export files of earlier development versions can still be imported."""

from pathlib import Path

from tests.integration.transfer.conftest import TenantStack
from tests.integration.transfer.import_reports import ARCHIVED, FULL

FILE = Path(__file__).parent / "files" / "export_of_earlier_development_version.ndjson"


async def test_a_file_with_the_earlier_field_failure_is_imported_with_every_field(stack: TenantStack) -> None:
    report = await stack.import_lines(FILE.read_bytes())
    assert (report["created"], report["malformed"]) == (2, [])
    # It says nothing of origins, so all of it is what its importer says.
    origin = {"channel": "import", "trust": "operator"}
    expected = [FULL | {"origin": origin}, ARCHIVED | {"origin": origin}]
    assert await stack.export_memories() == expected
