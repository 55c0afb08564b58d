"""An archive of skills is read within its limits, and refused if it could lead elsewhere."""

import io
import stat
import zipfile

import pytest

from shared.foundation import errors
from shared.memory.skills import skill_zip
from shared.memory.skills.skill import SkillFile
from tests.skill_archives import skill_text, zip_of
from tests.unit.skills.sample_skill import skill

SKILL = skill_text("bake-bread")


def unpack_one(files: dict[str, str | bytes]) -> skill_zip.UnpackedSkill:
    [unpacked] = skill_zip.unpack(zip_of(files))
    return unpacked


def test_a_packed_skill_comes_out_with_its_files_and_none_can_be_executed() -> None:
    files: dict[str, str | bytes] = {"bake-bread/SKILL.md": SKILL, "bake-bread/scripts/run.sh": b"\x00rm"}
    unpacked = unpack_one(files)
    assert unpacked.warnings == ()
    stored = skill(files=unpacked.draft.files)
    packed = skill_zip.pack(stored, unpacked.contents)
    assert packed == skill_zip.pack(stored, unpacked.contents), "the same skill gives the same bytes"
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.namelist() == ["bake-bread/SKILL.md", "bake-bread/scripts/run.sh"]
        assert archive.read("bake-bread/scripts/run.sh") == b"\x00rm"
        modes = {info.external_attr >> 16 for info in archive.infolist()}
    assert modes == {stat.S_IFREG | 0o644}


def test_a_skill_may_stand_at_the_top_and_several_in_folders() -> None:
    assert unpack_one({"SKILL.md": SKILL, "a.txt": "a"}).draft.files is not None
    many = {f"skills/s{n}/SKILL.md": skill_text(f"s{n}") for n in range(3)}
    assert [unpacked.name for unpacked in skill_zip.unpack(zip_of(many))] == ["s0", "s1", "s2"]


def test_a_skill_within_another_is_a_file_of_it() -> None:
    unpacked = unpack_one({"bake-bread/SKILL.md": SKILL, "bake-bread/examples/SKILL.md": "another"})
    assert unpacked.draft.files is not None
    assert [file.path for file in unpacked.draft.files] == ["examples/SKILL.md"]


def test_files_of_an_operating_system_are_left_out_with_a_warning() -> None:
    unpacked = unpack_one({"SKILL.md": SKILL, ".DS_Store": "x", "__MACOSX/a": "x"})
    assert (unpacked.draft.files, unpacked.contents) == ((), {})
    assert "left out" in unpacked.warnings[0]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("../a", "'..' segment"),
        ("b/../../a", "'..' segment"),
        ("/etc/passwd", "absolute"),
        ("a\\..\\b", "single '/'"),
        ("C:/a", "single '/'"),
        ("a//b", "single '/'"),
        ("./a", "single '/'"),
        ("a\nb", "line breaks"),
        ("a" * 256, "at most 255"),
        ("skill.MD", "another file"),
    ],
)
def test_a_path_that_could_lead_elsewhere_refuses_the_whole_archive(path: str, rule: str) -> None:
    with pytest.raises(errors.Invalid, match=rule):
        skill_zip.unpack(zip_of({"SKILL.md": SKILL, path: "x"}))


def _zip_with(info: zipfile.ZipInfo, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SKILL.md", SKILL)
        archive.writestr(info, "/etc/passwd", method)
    return buffer.getvalue()


def test_a_link_is_refused() -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(errors.Invalid, match="no link"):
        skill_zip.unpack(_zip_with(link))


def test_an_unusual_compression_is_refused() -> None:
    with pytest.raises(errors.Invalid, match="stored or deflated"):
        skill_zip.unpack(_zip_with(zipfile.ZipInfo("a"), zipfile.ZIP_LZMA))


def test_a_bomb_is_given_up_at_the_limit_and_not_unpacked() -> None:
    bomb = zip_of({"SKILL.md": SKILL, "bomb": b"\x00" * (200 * 1024 * 1024)})
    assert len(bomb) < skill_zip.MAX_ZIP_BYTES
    with pytest.raises(errors.TooLarge, match="1048576 bytes"):
        skill_zip.unpack(bomb)


def test_many_files_together_are_limited_too() -> None:
    full = {f"f{n}": bytes(1024 * 1024) for n in range(9)}
    with pytest.raises(errors.TooLarge, match="8388608"):
        skill_zip.unpack(zip_of({"SKILL.md": SKILL, **full}))
    with pytest.raises(errors.TooLarge, match="1024 files"):
        skill_zip.unpack(zip_of({"SKILL.md": SKILL, **{f"f{n}": "" for n in range(1024)}}))


def test_a_lie_about_the_size_does_not_help() -> None:
    """The directory says that the file has 5 bytes: it is not read past them, and the checksum is wrong."""
    raw = bytearray(zip_of({"SKILL.md": SKILL, "b": b"\x00" * 5_000_000}))
    start = raw.rfind(b"PK\x01\x02")
    raw[start + 24 : start + 28] = (5).to_bytes(4, "little")
    with pytest.raises(errors.Invalid, match="undamaged"):
        skill_zip.unpack(bytes(raw))


@pytest.mark.parametrize("raw", [b"", b"PK", b"not a zip" * 100, zip_of({"SKILL.md": SKILL})[:-30]])
def test_what_is_no_archive_is_refused(raw: bytes) -> None:
    with pytest.raises(errors.Invalid, match="undamaged zip"):
        skill_zip.unpack(raw)


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"readme.md": "x"}, "must have a SKILL.md"),
        ({"a/SKILL.md": SKILL, "b/SKILL.md": SKILL}, "two skills of one name"),
        ({f"s{n}/SKILL.md": skill_text(f"s{n}") for n in range(51)}, "at most 50 skills"),
    ],
)
def test_an_archive_of_no_or_too_many_skills_is_refused(files: dict[str, str | bytes], rule: str) -> None:
    with pytest.raises(errors.Invalid, match=rule):
        skill_zip.unpack(zip_of(files))


@pytest.mark.parametrize(
    "paths",
    [
        ("a1/x", "a1/x/y"),
        ("a1/x/y", "a1/x"),
        ("a1/X", "a1/x/y"),
        ("a/README.md", "a/readme.md"),
        ("\u00e9", "e\u0301"),
        ("stra\u00dfe", "STRASSE"),
        ("Docs/a", "docs/b"),
        ("SKILL.md/a",),
    ],
)
def test_two_files_of_one_place_refuse_the_whole_archive(paths: tuple[str, ...]) -> None:
    with pytest.raises(errors.Invalid, match=r"path of another file|differs from another one"):
        skill_zip.unpack(zip_of({"SKILL.md": SKILL, **dict.fromkeys(paths, "x")}))
    files = [SkillFile(path=path, sha256="0" * 64, size_bytes=1) for path in paths]
    with pytest.raises(errors.Invalid, match=r"path of another file|differs from another one"):
        skill_zip.check_files(files, "files")


def test_files_beside_each_other_are_no_conflict() -> None:
    paths = ("a/b/c", "a/b/d", "a/e", "b", "a.b")
    unpacked = unpack_one({"SKILL.md": SKILL, **dict.fromkeys(paths, "x")})
    assert unpacked.draft.files is not None
    assert {file.path for file in unpacked.draft.files} == set(paths)
    skill_zip.check_files(unpacked.draft.files, "files")
    many = [SkillFile(path=f"f{n}", sha256="0" * 64, size_bytes=1) for n in range(skill_zip.MAX_ENTRIES)]
    with pytest.raises(errors.TooLarge, match="fewer than 1024"):
        skill_zip.check_files(many, "files")


@pytest.mark.parametrize("path", ["con", "docs/AUX.txt", "lpt1.tar.gz", "a.", "b /c", "why?", 'a"b', "a|b"])
def test_a_name_that_windows_cannot_store_is_let_in_with_a_warning(path: str) -> None:
    unpacked = unpack_one({"SKILL.md": SKILL, path: "x"})
    assert unpacked.warnings == ("a file has a name that Windows can't store",)


@pytest.mark.parametrize("path", ["console", "a.b", "com10", "auxiliary/x", "nulls"])
def test_a_name_that_every_system_can_store_has_no_warning(path: str) -> None:
    assert unpack_one({"SKILL.md": SKILL, path: "x"}).warnings == ()
