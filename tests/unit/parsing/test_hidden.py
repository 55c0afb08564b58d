"""What a page or a mail hides by its own style is not read, and gives no title; what is seen is."""

from email.message import EmailMessage

import pytest

from shared.memory.documents.parsed import ParsedDocument
from workers.documents.parsing.read import read

HIDING = [
    "opacity:.0",
    "opacity:-1",
    "opacity: 0e3",
    "opacity:calc(0)",
    "font-size:.0em",
    "font-size:1px",
    "font-size:1%",
    "font:0/0 a",
    "font: italic 400 0px/1 serif",
    r"display:\6eone",
    r"d\69 splay : no\ne !important",
    "content:';'; display:none",
    "background:url(a;b); display:none",
    "color:transparent",
    "color:rgba(0,0,0,0)",
    "color:rgb(0 0 0 / 0%)",
    "color:#0000",
    "color:#12345600",
    "clip-path:inset(50%)",
    "clip-path:inset(0 60% 0 40%)",
    "clip-path:circle(0 at 50% 50%)",
    "clip-path:polygon(0 0, 0 0, 0 0)",
    "position:absolute; clip:rect(0 0 0 0)",
    "position:absolute; clip:rect(1px, 1px, 1px, 1px)",
    "text-indent:-9999px",
    "text-indent:-100em",
    "position:absolute; left:-999px",
    "position:fixed; top:-1e4px",
    "margin-left:-9999px",
    "transform:translateX(-9999px)",
    "height:0; overflow:hidden",
    "max-height:0px; overflow:hidden; line-height:1px",
    "width:1px; height:1px; overflow:clip",
    "transform:scale(0)",
    "transform:rotate(3deg) scaleY(.0)",
    "transform:matrix(0,0,0,0,0,0)",
    "scale:0",
    "zoom:0",
    "filter:opacity(0)",
]
SHOWING = [
    "opacity:.5",
    "font:400 12px/0 serif",
    "font-size:.8em",
    "color:#00ff",
    "color:rgb(0,0,0)",
    "color:transparent; background-clip:text",
    "clip-path:inset(10% 20%)",
    "clip-path:inset(60% 0 0)",
    "clip:rect(0, 100px, 50px, 0)",
    "clip-path:polygon(0 0, 10px 0, 10px 10px)",
    "text-indent:-2em",
    "left:-9999px",
    "position:absolute; left:-20px; top:9999px",
    "height:0",
    "height:0; padding-bottom:56%; overflow:hidden",
    "width:0; flex:1; overflow:hidden",
    "transform:scale(.5) translate(-50%, -50%)",
    "transform:matrix(1,0,0,1,0,0)",
    "zoom:1",
    "content:'display:none'",
    "--x:(;display:none;)",
    "display:no/**/ne",
]


def _page(body: str) -> ParsedDocument:
    return read(f"<!doctype html><html><head></head><body>{body}</body></html>".encode(), "a.html", None)


def _texts(document: ParsedDocument) -> list[str]:
    return [block.text for block in document.blocks]


def _mail(body: str) -> ParsedDocument:
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.org", "Rules"
    message.set_content(body, subtype="html")
    return read(bytes(message), "a.eml", None)


@pytest.mark.parametrize("style", HIDING)
def test_text_that_is_hidden_by_its_own_style_is_not_read(style: str) -> None:
    body = f'<p>Shown.</p><div style="{style}"><p>Secret</p></div><p>End.</p>'
    assert _texts(_page(body)) == ["Shown.", "End."]
    assert _texts(_mail(body))[-2:] == ["Shown.", "End."]


@pytest.mark.parametrize("style", SHOWING)
def test_text_that_its_style_shows_is_read(style: str) -> None:
    assert _texts(_page(f'<div style="{style}"><p>Read me.</p></div>')) == ["Read me."]


@pytest.mark.parametrize(
    ("hiding", "showing"),
    [
        ("font-size:0", "font-size:13px"),
        ("font:0/0 a", "font:12px serif"),
        ("visibility:hidden", "visibility:visible"),
        ("color:transparent", "color:#333"),
        ("text-indent:-9999px", "text-indent:0"),
    ],
)
def test_what_a_part_of_a_hidden_text_shows_again_is_read(hiding: str, showing: str) -> None:
    body = (
        f'<table><tr><td style="{hiding}">no\n<div style="{showing}">Read me.</div>no</td></tr></table><p>End'
    )
    assert [(block.text, block.line_from) for block in _page(body).blocks] == [("Read me.", 2), ("End", 2)]


def test_what_is_a_share_of_no_size_has_none() -> None:
    assert _texts(_page('<div style="font-size:0"><p style="font-size:2em">Secret</p></div>End')) == ["End"]


def test_a_cell_is_as_large_as_its_text() -> None:
    cell = '<td style="max-width:0; overflow:hidden">Read me.</td>'
    assert _texts(_page(f"<table><tr>{cell}</tr></table>")) == ["Read me."]


@pytest.mark.parametrize(
    "hidden",
    [
        '<div style="display:none"><h1>Secret</h1></div>',
        "<h1 hidden>Secret</h1>",
        '<h1 style="font-size:0">Secret</h1>',
        '<h1><span style="opacity:0">Secret</span></h1>',
        "<svg><title>Secret</title></svg>",
        "<div hidden><title>Secret</title></div>",
        "<template><h1>Secret</h1></template>",
    ],
)
def test_a_title_is_what_is_seen(hidden: str) -> None:
    assert _page(f"{hidden}<p>Text.</p>").title is None
    assert _page(f"{hidden}<div><h1>Our <b>plan</b></h1></div><h1>More</h1>").title == "Our plan"
    titled = f"<html><head>{hidden}<title>Our rules</title></head><body><h1>Plan</h1></body></html>"
    assert read(titled.encode(), "a.html", None).title in {"Our rules", "Plan"}
