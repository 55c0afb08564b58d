"""Skills as zip archives: folders with a SKILL.md, and the files that belong to it.

Nothing of an archive is executed or written to a disk. An entry is read in small steps and given up at its
limit, whatever the archive says of its size, so a small archive cannot fill the memory. An archive with an
entry that could mean a place outside its folder, the place of another one, or no plain file, is refused as a
whole. Two paths are of one place if some system takes one for the other: "README" and "readme", "é" in one
character and in two. A name that the format allows and some system can't store is let in with a warning.
"""

import hashlib
import io
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from shared.foundation import errors, validation
from shared.memory.skills import skill_markdown
from shared.memory.skills.skill import Skill, SkillDraft, SkillFile

MAX_ZIP_BYTES = 4 * 1024 * 1024
MAX_FILE_BYTES = 1024 * 1024
MAX_TOTAL_BYTES = 8 * 1024 * 1024
"""Bytes of all files of an archive, unpacked."""
MAX_ENTRIES = 1024
MAX_SKILLS = 50
MAX_PATH = 255
_ZIP = "zip"
_STEP = 64 * 1024
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_EPOCH = (1980, 1, 1, 0, 0, 0)
_CLUTTER = frozenset({"__MACOSX", ".DS_Store", "Thumbs.db", ".git"})
_CLUTTER_LEFT_OUT = "files of an operating system or of git: left out"
# Characters, ends and names that Windows refuses, or stores as something else.
_NOT_PORTABLE = re.compile(
    r"""[<>"|?*]|[. ]\Z|\A(?:con|prn|aux|nul|com[1-9¹²³]|lpt[1-9¹²³])(?:\..*)?\Z""", re.IGNORECASE
)
_NOT_STORABLE = "a file has a name that Windows can't store"
# What the library raises for archives that are damaged, or made to do damage.
_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class UnpackedSkill:
    """A skill of an archive; `contents` are its files' bytes by their digests."""

    name: str
    draft: SkillDraft
    contents: Mapping[str, bytes]
    warnings: tuple[str, ...]


def pack(skill: Skill, contents: Mapping[str, bytes]) -> bytes:
    """Return the archive of a skill, the same for the same skill. `contents` are its files by digest."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, f"{skill.name}/{skill_markdown.FILE_NAME}", skill_markdown.render(skill).encode())
        for file in skill.files:
            _add(archive, f"{skill.name}/{file.path}", contents[file.sha256])
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, path: str, content: bytes) -> None:
    info = zipfile.ZipInfo(path, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    # A plain file that nobody may execute.
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    archive.writestr(info, content)


def unpack(raw: bytes) -> list[UnpackedSkill]:
    """Return the skills of an archive. Raises errors.Invalid that names the rule, or errors.TooLarge."""
    if len(raw) > MAX_ZIP_BYTES:
        raise errors.TooLarge(_ZIP, f"must be at most {MAX_ZIP_BYTES} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            entries = dict(_read_entries(archive))
    except _BROKEN:
        raise errors.Invalid(_ZIP, "must be an undamaged zip archive without a password") from None
    roots = _roots(entries)
    if not roots:
        raise errors.Invalid(_ZIP, f"must have a {skill_markdown.FILE_NAME}, at its top or in a folder")
    if len(roots) > MAX_SKILLS:
        raise errors.TooLarge(_ZIP, f"must have at most {MAX_SKILLS} skills")
    skills = [_unpack_skill(root, entries) for root in roots]
    if len({skill.name for skill in skills}) < len(skills):
        raise errors.Invalid(_ZIP, "must not have two skills of one name")
    return skills


def _read_entries(archive: zipfile.ZipFile) -> Iterator[tuple[PurePosixPath, bytes]]:
    infos = [info for info in archive.infolist() if not info.is_dir()]
    if len(infos) > MAX_ENTRIES:
        raise errors.TooLarge(_ZIP, f"must have at most {MAX_ENTRIES} files")
    left, places = MAX_TOTAL_BYTES, _Places()
    for position, info in enumerate(infos):
        path = check_path(info.filename, f"{_ZIP}.{position}")
        _check_plain(info, f"{_ZIP}.{position}")
        places.add(path, f"{_ZIP}.{position}")
        content = _read(archive, info, min(left, MAX_FILE_BYTES), f"{_ZIP}.{position}")
        left -= len(content)
        yield path, content


def check_files(files: Sequence[SkillFile], field: str) -> None:
    """Raise errors.Invalid unless these files of a skill could come out of an archive together."""
    if len(files) >= MAX_ENTRIES:
        raise errors.TooLarge(field, f"must be fewer than {MAX_ENTRIES}")
    places = _Places()
    places.add(PurePosixPath(skill_markdown.FILE_NAME), field)
    for position, file in enumerate(files):
        where = f"{field}.{position}"
        places.add(check_path(file.path, where), where)


class _Places:
    """The places of files, and of the folders that these need."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: dict[str, str] = {}

    def add(self, path: PurePosixPath, where: str) -> None:
        """Add a file. Raises errors.Invalid if its place is that of another file or of a folder."""
        folders = {_place_of(folder): str(folder) for folder in path.parents[:-1]}
        place = _place_of(path)
        if place in self._files or place in self._folders or not self._files.isdisjoint(folders):
            raise errors.Invalid(where, "must not have the path of another file, or one within it")
        if any(self._folders.get(known, name) != name for known, name in folders.items()):
            raise errors.Invalid(where, "must not be in a folder whose name differs from another one by case")
        self._files.add(place)
        self._folders |= folders


def _place_of(path: PurePosixPath) -> str:
    """Return what a path has in common with those that some system takes for the same."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", str(path)).casefold())


def is_portable(path: PurePosixPath) -> bool:
    """Tell whether every system can store a file of this path."""
    return not any(_NOT_PORTABLE.search(part) for part in path.parts)


def check_path(name: str, where: str) -> PurePosixPath:
    """Return the path of a file of a skill. Raises errors.Invalid for one that could lead elsewhere."""
    validation.check_single_line(name, where, MAX_PATH)
    validation.check_path_shape(name, where)
    segments = name.split("/")
    if "\\" in name or ":" in name or not {"", "."}.isdisjoint(segments):
        raise errors.Invalid(where, "must have a path of names separated by single '/'")
    return PurePosixPath(name)


def _check_plain(info: zipfile.ZipInfo, where: str) -> None:
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise errors.Invalid(where, "must be a plain file, and no link")
    if info.compress_type not in _METHODS:
        raise errors.Invalid(where, "must be stored or deflated")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, where: str) -> bytes:
    content = bytearray()
    with archive.open(info) as file:
        while step := file.read(min(_STEP, limit + 1 - len(content))):
            content += step
            if len(content) > limit:
                rule = f"must be at most {MAX_FILE_BYTES} bytes, and all files {MAX_TOTAL_BYTES}"
                raise errors.TooLarge(where, rule)
    return bytes(content)


def _roots(entries: Mapping[PurePosixPath, bytes]) -> list[PurePosixPath]:
    """Return the folders that are skills; one inside another one is a part of that."""
    folders = sorted({path.parent for path in entries if path.name == skill_markdown.FILE_NAME})
    return [folder for folder in folders if not any(other in folder.parents for other in folders)]


def _unpack_skill(root: PurePosixPath, entries: Mapping[PurePosixPath, bytes]) -> UnpackedSkill:
    parsed = skill_markdown.parse(entries[root / skill_markdown.FILE_NAME], root.name)
    contents: dict[str, bytes] = {}
    files: list[SkillFile] = []
    warnings: dict[str, None] = {}
    for path, content in entries.items():
        if root not in path.parents or path == root / skill_markdown.FILE_NAME:
            continue
        relative = path.relative_to(root)
        if not _CLUTTER.isdisjoint(relative.parts):
            warnings[_CLUTTER_LEFT_OUT] = None
            continue
        if not is_portable(relative):
            warnings[_NOT_STORABLE] = None
        sha256 = hashlib.sha256(content).hexdigest()
        contents[sha256] = content
        files.append(SkillFile(path=str(relative), sha256=sha256, size_bytes=len(content)))
    draft = parsed.draft.model_copy(update={"files": tuple(files)})
    return UnpackedSkill(parsed.name, draft, contents, (*parsed.warnings, *warnings))
