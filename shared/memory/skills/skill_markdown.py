"""SKILL.md, the open format of agent skills: YAML front matter, and the content in Markdown.

What goes out keeps to the specification. What comes in is read leniently: what can be understood is taken,
and a warning tells of everything else. Loci's own fields stand under `metadata`, with the prefix `loci-`.

The content is what stands behind the front matter, byte for byte: with its blank lines at both ends and its
line ends, whichever they are. So a digest of it is the same on both sides of an archive. Of the front matter
the values stay, and not the way in which they are written.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

import yaml

from shared.foundation import errors, validation
from shared.memory.skills.skill import (
    MAX_DESCRIPTION,
    MAX_NAME,
    FrontMatter,
    Skill,
    SkillDraft,
    SummaryOrigin,
    beginning_of,
    check_name,
    check_summary,
)

FILE_NAME = "SKILL.md"
MAX_BYTES = 256 * 1024
"""The size of a SKILL.md."""
MAX_FRONT_MATTER = 16 * 1024
"""The characters of front matter; each of its fields is far shorter."""
_MAX_DEPTH = 20
_OPENING = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
_CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
_MAX_COMPATIBILITY = 500
_MAX_TEXT = 1024
_OWN_PREFIX = "loci-"
_SUMMARY, _SEE_ALSO = "loci-summary", "loci-see-also"
_KNOWN = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_FENCE = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PAIR = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]*(.*)")


@dataclass(frozen=True, slots=True)
class ParsedSkill:
    """A skill that was read from a SKILL.md, and what was understood differently, or not at all."""

    name: str
    draft: SkillDraft
    warnings: tuple[str, ...]


def render(skill: Skill) -> str:
    """Return the SKILL.md of a skill."""
    front = skill.front_matter
    description = front.description or skill.summary
    own = {_SUMMARY: skill.summary} if description != skill.summary else {}
    own |= {_SEE_ALSO: " ".join(skill.see_also)} if skill.see_also else {}
    fields = {
        "name": skill.name,
        "description": description,
        "license": front.license,
        "compatibility": front.compatibility,
        "metadata": front.metadata | own,
        "allowed-tools": front.allowed_tools,
    }
    present = {name: value for name, value in fields.items() if value}
    head = yaml.safe_dump(present, sort_keys=False, allow_unicode=True, width=10_000)
    return f"---\n{head}---\n{skill.content}"


def parse(raw: bytes, folder: str) -> ParsedSkill:
    """Return the skill in a SKILL.md that lies in a folder ('': in none).

    Raises errors.Invalid for one without content, or without a name that can be used.
    """
    if len(raw) > MAX_BYTES:
        raise errors.TooLarge(FILE_NAME, f"must be at most {MAX_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise errors.Invalid(FILE_NAME, "must be UTF-8") from None
    warnings: list[str] = []
    fence = _FENCE.match(text)
    fields = _read_fields(fence[1], warnings) if fence else {}
    if fence is None:
        warnings.append("there is no front matter")
    name = _name(fields.get("name"), folder, warnings)
    content = text[fence.end() :] if fence else text
    draft = _draft(fields, content, warnings)
    return ParsedSkill(name, draft.validated(), tuple(warnings))


def _read_fields(head: str, warnings: list[str]) -> dict[str, Any]:
    """Return the fields of front matter. What is no YAML is read line by line, as many write it."""
    if len(head) > MAX_FRONT_MATTER:
        raise errors.TooLarge(FILE_NAME, f"must have at most {MAX_FRONT_MATTER} characters of front matter")
    try:
        _check_tokens(head)
        # Every value stays the text that it was written as: a number of 6000 digits is no number here.
        fields = yaml.load(head, Loader=yaml.BaseLoader)  # noqa: S506  (it makes texts, lists and mappings alone)
        if not fields or isinstance(fields, dict):
            return {str(name): value for name, value in (fields or {}).items()}
    except (yaml.YAMLError, TypeError):  # a list can't be the name of a field
        pass
    warnings.append("the front matter is not YAML: read line by line")
    pairs = filter(None, map(_PAIR.fullmatch, head.splitlines()))
    return {pair[1]: pair[2].strip().strip("\"'") for pair in pairs}


def _check_tokens(head: str) -> None:
    """Raise errors.Invalid for aliases, which can stand for much, and YAMLError for deep nesting."""
    depth = 0
    for token in yaml.scan(head, Loader=yaml.BaseLoader):
        if isinstance(token, yaml.AliasToken):
            raise errors.Invalid(FILE_NAME, "must not have YAML aliases")
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if depth > _MAX_DEPTH:
            raise yaml.YAMLError(f"nested deeper than {_MAX_DEPTH} levels")


def _name(given: Any, folder: str, warnings: list[str]) -> str:
    if given is None:
        warnings.append("there is no name: that of the folder is used")
        given = folder
    ascii_text = unicodedata.normalize("NFKD", str(given)).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")[:MAX_NAME].strip("-")
    if name != given:
        warnings.append(f"the name was changed to '{name}'")
    if folder and folder != name:
        warnings.append("the folder has another name than the skill")
    return check_name(name)


def _draft(fields: dict[str, Any], content: str, warnings: list[str]) -> SkillDraft:
    warnings += [f"unknown field: {_quoted(name)}" for name in fields if name not in _KNOWN]
    metadata = _metadata(fields.get("metadata"), warnings)
    own = {name: metadata.pop(name) for name in [*metadata] if name.startswith(_OWN_PREFIX)}
    front_matter = FrontMatter(
        description=_text(fields, "description", MAX_DESCRIPTION, warnings),
        license=_text(fields, "license", _MAX_TEXT, warnings),
        compatibility=_text(fields, "compatibility", _MAX_COMPATIBILITY, warnings),
        allowed_tools=_text(fields, "allowed-tools", _MAX_TEXT, warnings),
        metadata=metadata,
    )
    summary, origin = _summary(own.get(_SUMMARY), front_matter.description, content, warnings)
    if front_matter.description == summary:
        front_matter = front_matter.model_copy(update={"description": None})
    return SkillDraft(
        content=content,
        summary=summary,
        summary_origin=origin,
        see_also=_see_also(own.get(_SEE_ALSO, ""), warnings),
        front_matter=front_matter,
    )


def _text(fields: dict[str, Any], name: str, longest: int, warnings: list[str]) -> str | None:
    """Return a field as one text that fits, or None if there is nothing usable."""
    value = fields.get(name)
    if value is None:
        if name == "description":
            warnings.append("there is no description")
        return None
    if isinstance(value, list):
        value = " ".join(map(str, value))
        warnings.append(f"{name} is a list: joined")
    elif not isinstance(value, str):
        warnings.append(f"{name} is no text")
        value = str(value)
    if len(value) > longest:
        warnings.append(f"{name} is longer than {longest} characters: cut")
    return validation.check_text(value[:longest], name, allow_blank=True).strip() or None


def _metadata(value: Any, warnings: list[str]) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        warnings.append("metadata is no mapping: left out")
        return {}
    pairs: dict[str, str] = {}
    for key, item in value.items():
        if isinstance(item, dict | list) or item is None:
            warnings.append(f"metadata {_quoted(key)} is no text: left out")
        else:
            pairs[str(key)] = str(item)
    return validation.check_metadata(pairs)


def _summary(
    own: str | None, description: str | None, content: str, warnings: list[str]
) -> tuple[str | None, SummaryOrigin]:
    for given in filter(None, (own, description)):
        try:
            return check_summary(given), SummaryOrigin.CALLER
        except errors.Invalid:
            continue
    if description is not None:
        warnings.append("the description is longer than a summary: its beginning is the summary")
    return beginning_of(description or content), SummaryOrigin.CONTENT


def _see_also(text: str, warnings: list[str]) -> tuple[str, ...]:
    names: list[str] = []
    for name in text.split():
        try:
            names.append(check_name(name))
        except errors.Invalid:
            warnings.append(f"{_SEE_ALSO} has an item that is no name: left out")
    return tuple(names)


def _quoted(name: Any) -> str:
    return "".join(filter(str.isprintable, str(name)))[:64]
