"""Replies as models send them, with the contents that can be used, or None for an unusable reply.

An empty list is expected of a reply that says `[]`: there is nothing to keep.
"""

TWO = '[{"content": "Ada likes trains", "tags": ["travel"]}, {"content": "Bob flies", "tags": []}]'
ADA, BOB = "Ada likes trains", "Bob flies"
BOTH = [ADA, BOB]
DRAFT = '[{"content": "a draft"}]'

# Valid replies.
WELL_FORMED: dict[str, tuple[str, list[str] | None]] = {
    "as asked": (TWO, BOTH),
    "nothing to keep": ("[]", []),
    "nothing, with spaces": (" \n[ ]\n ", []),
    "one item": ('[{"content": "Ada likes trains"}]', [ADA]),
    "pretty-printed": ('[\n  {\n    "content": "Ada likes trains"\n  }\n]\n', [ADA]),
    "byte order mark": ("\ufeff" + TWO, BOTH),
    "escapes": ('[{"content": "caf\\u00e9 \\"Ada\\" \\ud83d\\ude00"}]', ['café "Ada" 😀']),
    "raw line break in a string": ('[{"content": "first\nsecond"}]', ["first\nsecond"]),
    "brackets in a string": ('[{"content": "a [b] {c} ]}"}]', ["a [b] {c} ]}"]),
    "duplicate keys": ('[{"content": "old", "content": "Bob flies"}]', [BOB]),
    "objects within an item": ('[{"content": "Bob flies", "parts": [{"content": "z"}]}]', [BOB]),
    "unknown keys": ('[{"content": "Bob flies", "x": {"y": [1]}}]', [BOB]),
    "Russian": ('[{"content": "Аде нравятся поезда"}]', ["Аде нравятся поезда"]),
    "Chinese with full-width prose": (
        "以下是结果\uff1a" + '[{"content": "艾达喜欢火车"}]' + "。",
        ["艾达喜欢火车"],
    ),
}

# Replies with words, fences and thoughts around the JSON.
WRAPPED: dict[str, tuple[str, list[str] | None]] = {
    "fenced": (f"```json\n{TWO}\n```", BOTH),
    "fenced without a language": (f"```\n{TWO}\n```", BOTH),
    "fenced and unclosed": (f"```json\n{TWO}", BOTH),
    "fenced nothing": ("```json\n[]\n```", []),
    "tildes": (f"~~~\n{TWO}\n~~~", BOTH),
    "prose before": (f"Here are the memories:\n{TWO}", BOTH),
    "prose after": (f"{TWO}\nLet me know if you need more.", BOTH),
    "prose with brackets before": (f"I [the model] chose {{two}} facts [1]: {TWO}", BOTH),
    "prose with brackets after": (f"{TWO} (see [1], {{x}} and [note])", BOTH),
    "markdown link before": (f"See [the rules](http://x) for {TWO}", BOTH),
    "nothing, in prose": ("Nothing durable here, so: []. Have a nice day!", []),
    "thought": (f"<think>hm</think>{TWO}", BOTH),
    "thinking, upper case": (f"<THINKING>\nhm\n</THINKING>\n{TWO}", BOTH),
    "several thoughts": (f"<think>a</think>\n<think>b</think>\n{TWO}", BOTH),
    "array in a thought": (f"<think>perhaps {DRAFT}?</think>{TWO}", BOTH),
    "array in a thought, then nothing": (f"<think>perhaps {DRAFT}? No.</think>[]", []),
    "thought that was never opened": (f"perhaps {DRAFT}?</think>{TWO}", BOTH),
    "thought that was never opened, then nothing": (f"perhaps {DRAFT}?</think>\n\n[]", []),
    "thought that was never closed after prose": (f"Let me see.\n<think>\nperhaps {DRAFT}", None),
    "thought before a fence": (f"<think>x</think>\n```json\n{TWO}\n```", BOTH),
    "tag of a thought within a fact": (
        '[{"content": "Ends with </think> always"}]',
        ["Ends with </think> always"],
    ),
    "thought, then a tag within a fact": (
        '<think>x</think>[{"content": "R1 writes <think>x</think>"}]',
        ["R1 writes <think>x</think>"],
    ),
    "thought after the array": (f"{TWO}\n<think>was that right?</think>", BOTH),
    "a draft, then the final array": (f"Draft: {DRAFT}\nFinal: {TWO}", BOTH),
    "a spoilt draft, then the final array": (f'Draft: [{{"content": oops}}]\nFinal: {TWO}', BOTH),
}

# Replies that are cut off: none of them counts, not even what is complete before the end.
CUT_OFF: dict[str, tuple[str, list[str] | None]] = {
    "in a string": ('[{"content": "Ada likes trains"}, {"content": "Bob fl', None),
    "in an escape": ('[{"content": "Ada likes trains"}, {"content": "Bob \\u00', None),
    "in a key": ('[{"content": "Ada likes trains"}, {"cont', None),
    "in a number": ('[{"content": "Ada likes trains"}, {"content": "Bob flies", "importance": 0.', None),
    "in a word": ('[{"content": "Ada likes trains"}, {"content": "Bob flies", "category": nul', None),
    "after a colon": ('[{"content": "Ada likes trains"}, {"content":', None),
    "after a comma": ('[{"content": "Ada likes trains"},', None),
    "after an object": ('[{"content": "Ada likes trains"}', None),
    "in nested tags": ('[{"content": "Ada likes trains"}, {"content": "Bob", "tags": ["a", "b', None),
    "after empty tags": ('[{"content": "Ada likes trains", "tags": []}, {"content": "Bob fl', None),
    "after tags of objects": ('[{"content": "Ada likes trains", "parts": [{"content": "z"}]}, {"c', None),
    "in a fence that was closed": ('```json\n[{"content": "Ada likes trains"}, {"content": "B\n```', None),
    "in the first item": ('[{"content": "Ada li', None),
    "in the first item after empty tags": ('[{"content": "Ada", "tags": [], "ca', None),
    "in the first item after inner objects": ('[{"content": "Ada", "parts": [{"content": "z"}], "ca', None),
    "after the bracket": ("[", None),
    "after the brace": ("[{", None),
    "in a wrapper": ('{"memories": [{"content": "Ada likes trains"}, {"content": "Bob', None),
    "after a whole draft": (f'{DRAFT}\n[{{"content": "Ada likes trains"}}, {{"content": "Bob', None),
    "in a thought": (f"<think>perhaps {DRAFT}", None),
}

# Replies that are broken in the middle. What is mended loses nothing; of the others nothing counts.
BROKEN: dict[str, tuple[str, list[str] | None]] = {
    "a word in the middle": ('[{"content": "Ada likes trains"}, oops, {"content": "Bob flies"}]', None),
    "an unescaped quote": ('[{"content": "Ada likes trains"}, {"content": "the "best" way"}]', None),
    "empty tags, then spoilt": ('[{"content": "Ada", "tags": [], oops}]', None),
    "a good draft, then a spoilt array": (f'{DRAFT}\n[{{"content": oops}}]', None),
    "trailing comma": ('[{"content": "Ada likes trains"},]', [ADA]),
    "trailing commas inside": ('[{"content": "Ada likes trains", "tags": ["a",],}, ]', [ADA]),
    "a comment": ('[{"content": "Ada likes trains"} // first\n]', [ADA]),
    "a comment between": ('[{"content": "Ada likes trains"}, /* then */ {"content": "Bob flies"}]', BOTH),
    "an address and a comma": ('[{"content": "see http://a.b/c, now"},]', ["see http://a.b/c, now"]),
}

# Replies of another shape.
MISSHAPEN: dict[str, tuple[str, list[str] | None]] = {
    "wrapped": (f'{{"memories": {TWO}}}', BOTH),
    "wrapped with more": (f'{{"count": 2, "memories": {TWO}, "notes": ["x"]}}', BOTH),
    "wrapped nothing": ('{"memories": []}', []),
    "an object alone": ('{"content": "Ada likes trains", "tags": []}', [ADA]),
    "an object alone, fenced": ('```json\n{"content": "Ada likes trains"}\n```', [ADA]),
    "objects line by line": ('{"content": "Ada likes trains"}\n{"content": "Bob flies", "tags": []}', BOTH),
    "an array in an array": (f"[{TWO}]", BOTH),
    "arrays one after the other": (f"{DRAFT}\n{TWO}", BOTH),
    "objects among other things": ('[{"content": "Ada likes trains"}, null, "x", 3]', [ADA]),
    "strings instead of objects": ('["Ada likes trains", "Bob flies"]', None),
    "numbers instead of objects": ("[1, 2]", None),
    "an empty object": ("{}", None),
    "null": ("null", None),
    "a string": ('"Ada likes trains"', None),
    "Python's quotes": ("[{'content': 'Ada likes trains'}]", None),
    "YAML": ("- content: Ada likes trains", None),
    "XML": ("<memories><memory>Ada</memory></memories>", None),
    "an error": ('{"error": "I cannot do that", "items": []}', None),
    "other keys": ('[{"text": "Ada likes trains"}]', None),
}

# Values that no database can store.
UNFIT: dict[str, tuple[str, list[str] | None]] = {
    "blank content among good": ('[{"content": "  "}, {"content": "Bob flies"}]', [BOB]),
    "only blank content": ('[{"content": ""}, {"content": "\\n"}]', None),
    "content missing": ('[{"category": "x"}, {"content": "Bob flies"}]', [BOB]),
    "content of wrong types": (
        '[{"content": 1}, {"content": null}, {"content": ["x"]}, {"content": {}}]',
        None,
    ),
    "content is not a number": ('[{"content": NaN}, {"content": "Bob flies"}]', [BOB]),
    "NUL": ('[{"content": "a\\u0000b"}, {"content": "Bob flies"}]', [BOB]),
    "raw NUL": ('[{"content": "a\x00b"}, {"content": "Bob flies"}]', [BOB]),
    "lone surrogate": ('[{"content": "a\\ud800b"}, {"content": "Bob flies"}]', [BOB]),
    "too long": (f'[{{"content": "{"x" * 16_001}"}}, {{"content": "Bob flies"}}]', [BOB]),
    "as long as allowed": (f'[{{"content": "{"x" * 16_000}"}}]', ["x" * 16_000]),
    "repeated": ('[{"content": "Bob flies"}, {"content": " bob  FLIES "}]', [BOB]),
    "the shape itself": ('[{"content": "…", "category": null, "tags": ["…"]}]', None),
    "spaces around": ('[{"content": "  Bob flies \\n"}]', [BOB]),
}

# Replies without an answer.
REFUSED: dict[str, tuple[str, list[str] | None]] = {
    "a refusal": ("I'm sorry, but I can't help with that.", None),
    "a question": ("Could you clarify what you mean by 'note'?", None),
    "silence": ("", None),
    "spaces": (" \n\t ", None),
    "a page": ("<html><body>502 Bad Gateway</body></html>", None),
    "only brackets": ("[" * 5_000, None),
    "only braces": ("{" * 5_000, None),
    "deep": ("[" * 3_000 + "]" * 3_000, None),
    "thoughts without end": ("<think>" * 5_000, None),
    "thoughts' ends": ("</think>" * 5_000, None),
    "a number of many digits": ('[{"content": "Bob flies", "n": ' + "9" * 5_000 + "}]", None),
    "garbage": ("\x00\ud800\udfff]}[{\\", None),
}

REPLIES = {
    f"{family}: {name}": reply
    for family, replies in {
        "well-formed": WELL_FORMED,
        "wrapped": WRAPPED,
        "cut off": CUT_OFF,
        "broken": BROKEN,
        "misshapen": MISSHAPEN,
        "unfit": UNFIT,
        "refused": REFUSED,
    }.items()
    for name, reply in replies.items()
}
