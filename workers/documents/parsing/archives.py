"""Read the members of a ZIP archive one by one, in memory, within limits.

The sizes that an archive declares are checked before anything is unpacked, and Python unpacks no more of a
member than it declared. So a bomb is refused without being unpacked. Members are found by their names and
never written to the disk: a name that points outside of the archive is only a name, and is refused.
"""

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from shared.memory.documents.parsed import Unreadable

_MAX_UNPACKED_BYTES = 256 * 1024 * 1024
_MAX_RATIO = 200
_RATIO_FROM_BYTES = 16 * 1024 * 1024
_MAX_MEMBERS = 20_000
_ENCRYPTED = 0x1


@contextmanager
def open_archive(content: bytes) -> Iterator[zipfile.ZipFile]:
    """Open an archive whose members can be read safely. Raises Unreadable for any other."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check(archive.infolist(), len(content))
            yield archive
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, OSError) as error:
        raise Unreadable("damaged", "The file is a ZIP archive that can't be unpacked.") from error


def _check(members: list[zipfile.ZipInfo], packed_bytes: int) -> None:
    if len(members) > _MAX_MEMBERS:
        raise Unreadable("too_large", f"The archive has more than {_MAX_MEMBERS} files.")
    unpacked_bytes = sum(member.file_size for member in members)
    if unpacked_bytes > _MAX_UNPACKED_BYTES:
        limit = _MAX_UNPACKED_BYTES // 1024**2
        raise Unreadable("too_large", f"The archive unpacks to more than {limit} MiB.")
    if unpacked_bytes > max(_RATIO_FROM_BYTES, _MAX_RATIO * packed_bytes):
        raise Unreadable("too_large", f"The archive unpacks to more than {_MAX_RATIO} times its size.")
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise Unreadable("encrypted", "The archive is encrypted.")
    for member in members:
        path = PurePosixPath(member.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise Unreadable("damaged", "The archive has a file whose name points outside of the archive.")
