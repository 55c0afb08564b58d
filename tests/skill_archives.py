"""Build zip archives of skills, valid ones and others."""

import io
import zipfile
from collections.abc import Mapping

SKILL = "---\nname: {name}\ndescription: {summary}\n---\n\n{content}\n"


def skill_text(name: str, summary: str = "How to bake bread.", content: str = "Knead the dough.") -> str:
    """Return a SKILL.md."""
    return SKILL.format(name=name, summary=summary, content=content)


def zip_of(files: Mapping[str, str | bytes]) -> bytes:
    """Return an archive of files by their paths."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return buffer.getvalue()


def zip_of_skill(name: str, **fields: str) -> bytes:
    """Return an archive of one skill without files."""
    return zip_of({f"{name}/SKILL.md": skill_text(name, **fields)})
