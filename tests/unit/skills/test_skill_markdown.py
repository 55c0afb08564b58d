"""A SKILL.md goes out as the specification says, and comes in leniently, with warnings."""

from typing import Any

import pytest
import yaml

from shared.foundation import errors
from shared.memory.skills import skill_markdown
from shared.memory.skills.skill import FrontMatter, SummaryOrigin
from tests.unit.skills.sample_skill import skill


def front_of(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return fields


def parse(text: str, folder: str = "bake-bread") -> skill_markdown.ParsedSkill:
    return skill_markdown.parse(text.encode(), folder)


@pytest.mark.parametrize(
    "front",
    [
        FrontMatter(),
        FrontMatter(
            description="Use it: when somebody wants bread, and has an oven, flour, water and some time.",
            license="MIT",
            compatibility="needs an oven",
            allowed_tools="Bash(oven:*) Read",
            metadata={"author": "Ada: the baker", "---": "yes"},
        ),
    ],
)
def test_what_goes_out_comes_in_again_without_a_warning(front: FrontMatter) -> None:
    written = skill(front_matter=front, see_also=["mill-flour"], content="---\nnot: front\n---\nKnead. 詩")
    parsed = parse(skill_markdown.render(written))
    assert parsed.warnings == ()
    assert parsed.name == written.name
    assert (parsed.draft.content, parsed.draft.summary) == (written.content, written.summary)
    assert (parsed.draft.front_matter, parsed.draft.see_also) == (front, ("mill-flour",))


def test_what_goes_out_has_only_fields_of_the_specification() -> None:
    written = skill(see_also=["mill-flour"], front_matter=FrontMatter(description="When bread is wanted."))
    fields = front_of(skill_markdown.render(written))
    assert fields == {
        "name": "bake-bread",
        "description": "When bread is wanted.",
        "metadata": {"loci-summary": "How to bake bread.", "loci-see-also": "mill-flour"},
    }


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("Knead.", "no front matter"),
        ("---\ndescription: d\n---\nKnead.", "name of the folder|that of the folder"),
        ("---\nname: Bake Bread\ndescription: d\n---\nKnead.", "name was changed to 'bake-bread'"),
        ("---\nname: bake-bread\n---\nKnead.", "no description"),
        ("---\nname: bake-bread\ndescription: Use it: when hungry\n---\nKnead.", "line by line"),
        ("---\nname: bake-bread\ndescription: d\ncolour: red\n---\nKnead.", "unknown field: colour"),
        (
            "---\nname: bake-bread\ndescription: d\nallowed-tools: [a, b]\n---\nKnead.",
            "allowed-tools is a list",
        ),
        ("---\nname: bake-bread\ndescription: d\nmetadata: [a]\n---\nKnead.", "metadata is no mapping"),
        (
            "---\nname: bake-bread\ndescription: d\nmetadata: {a: {b: c}}\n---\nKnead.",
            "metadata a is no text",
        ),
        (f"---\nname: bake-bread\ndescription: {'d' * 1025}\n---\nKnead.", "longer than 1024"),
        ("---\nname: other\ndescription: d\n---\nKnead.", "folder has another name"),
    ],
)
def test_what_comes_in_is_read_leniently_with_a_warning(text: str, warning: str) -> None:
    parsed = parse(text)
    assert parsed.draft.content == "Knead."
    assert any(part in found for found in parsed.warnings for part in warning.split("|")), parsed.warnings


def test_a_long_description_stays_and_its_beginning_is_the_summary() -> None:
    words = " ".join(f"w{n}" for n in range(40))
    parsed = parse(f"---\nname: bake-bread\ndescription: {words}\n---\nKnead.")
    assert parsed.draft.front_matter is not None
    assert parsed.draft.front_matter.description == words
    assert parsed.draft.summary == " ".join(words.split()[:15])
    assert parsed.draft.summary_origin is SummaryOrigin.CONTENT


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b"---\nname: a\n---\n", "blank"),
        (b"x" * (skill_markdown.MAX_BYTES + 1), "at most"),
        (b"---\nname: ''\n---\nKnead.", "lower-case"),
        (b"---\nname: import\n---\nKnead.", "must not be one of"),
        (b"---\na: &a [x]\nb: *a\n---\nKnead.", "aliases"),
        (b'---\nname: a\nlicense: "\\0"\n---\nKnead.', "NUL"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_rule(raw: bytes, rule: str) -> None:
    with pytest.raises(errors.Invalid, match=rule):
        skill_markdown.parse(raw, "")


def test_deeply_nested_front_matter_is_read_line_by_line() -> None:
    parsed = parse(f"---\nname: bake-bread\nmetadata: {'[' * 5000}\n---\nKnead.")
    assert parsed.name == "bake-bread"


@pytest.mark.parametrize(
    "field",
    [f"license: 0x{'f' * 6000}", 'license: !!int ""', "license: !!timestamp zz", "license: !!bool zz"],
)
def test_every_value_is_the_text_that_it_was_written_as(field: str) -> None:
    parsed = parse(f"---\nname: bake-bread\ndescription: d\n{field}\n---\nKnead.")
    assert (parsed.name, parsed.draft.content) == ("bake-bread", "Knead.")


def test_front_matter_has_a_limit() -> None:
    with pytest.raises(errors.TooLarge, match="front matter"):
        parse(f"---\nname: bake-bread\ndescription: {'[' * 20_000}\n---\nKnead.")


@pytest.mark.parametrize(
    "body",
    [
        "Knead.",
        "\n\nKnead.\n\n\n",
        "\r\nKnead.\r\nBake.\r\n",
        " \n\tKnead.  \n ",
        "Knead.\rBake.\r",
        "---\nname: other\n---\nKnead.",
        "\ufeffKnead.\u2028Bake.\x0c",
    ],
)
def test_the_content_goes_out_and_comes_in_byte_for_byte(body: str) -> None:
    imported = parse(f"---\r\nname: bake-bread\r\ndescription: d\r\n---\r\n{body}")
    assert imported.draft.content == body
    written = skill_markdown.render(skill(content=imported.draft.content))
    assert written.endswith(f"\n---\n{body}")
    assert parse(written).draft.content == body


def test_what_is_written_again_is_the_same() -> None:
    once = skill_markdown.render(skill(content=parse("\r\nKnead.\r\n").draft.content))
    assert skill_markdown.render(skill(content=parse(once).draft.content)) == once
