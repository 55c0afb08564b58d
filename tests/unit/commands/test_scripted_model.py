"""The stand-in of the demo answers by its script, over HTTP, and knows nothing else."""

import json

import httpx

from services.commands import demo_mining, scripted_model

SCENE = demo_mining.read()


def ask(prompt: str) -> str:
    with scripted_model.serve(SCENE["sessions"]) as url:
        body = {"messages": [{"role": "system", "content": "rules"}, {"role": "user", "content": prompt}]}
        response = httpx.post(f"{url}/chat/completions", json=body)
    return str(response.json()["choices"][0]["message"]["content"])


def test_it_proposes_the_facts_of_a_session_with_its_id_and_the_known_fact() -> None:
    first, second = SCENE["sessions"]
    known = f"- [ID:0123456789ab] {first['proposed'][0]['content']} (since 2026-03-02)"
    [fact] = json.loads(ask(f"{known}\n## Session: s-2\n[1] {second['turns'][0]['text']}"))["facts"]
    assert (fact["of"], fact["sources"]) == ("0123456789ab", [["s-2", 1]])


def test_it_has_nothing_to_say_about_anything_else() -> None:
    assert ask("## Session: s-1\n[1] What is the weather like?") == "[]"
