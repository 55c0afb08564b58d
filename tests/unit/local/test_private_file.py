import stat
from pathlib import Path

from services.local import private_file


def test_a_written_file_is_readable_by_its_owner_only_and_leaves_no_draft(tmp_path: Path) -> None:
    private_file.write(tmp_path / "secret", "x")
    private_file.write(tmp_path / "secret", "y")
    assert (tmp_path / "secret").read_text() == "y"
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_a_password_is_created_once_and_kept(tmp_path: Path) -> None:
    password = private_file.password(tmp_path / "password")
    assert len(password) >= 32
    assert private_file.password(tmp_path / "password") == password
    assert private_file.password(tmp_path / "other") != password


def test_a_folder_is_created_private(tmp_path: Path) -> None:
    folder = private_file.folder(tmp_path / "a" / "b")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
