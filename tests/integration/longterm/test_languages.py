# ruff: noqa: RUF001
"""LT6, IX4: keyword search in many languages finds the same in Qdrant and in Postgres."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from uuid import uuid4

import pytest

from shared.foundation import config
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.second_gateway import beside

CONTENTS = {
    "short": "The team talks about AI on Mondays",
    "c-sharp": "Bob writes C# at work",
    "c-plus": "Carol prefers C++ for engines",
    "plain c": "Dan learnt C in school",
    "zone": "Eve lives in UTC-6 near the lake",
    "other zone": "Frank moved to UTC+3 last autumn",
    "ticket": "The outage was tracked as INC-20417",
    "version": "We pinned numpy to v1.26.4 because of the ABI",
    "number": "The invoice over 1,250.75 dollars is unpaid",
    "year": "Grace was born on 1906-12-09",
    "time": "The standup is at 09:30 sharp",
    "mail": "Write to heidi@example.org about keys",
    "path": "The config lies in /etc/loci/settings.toml",
    "snake": "Call parse_http_header before anything",
    "camel": "The class HttpHeaderParser is deprecated",
    "russian": "Иван любит ёлки и поезда",
    "ukrainian": "Київ стоїть на Дніпрі",
    "greek": "Η Αθήνα είναι πρωτεύουσα",
    "chinese": "艾达喜欢坐火车去北京旅行",
    "japanese": "東京タワーの近くに住んでいます",
    "katakana": "彼はコーヒーが好きです",
    "thai": "แมวชอบกินปลาทู",
    "korean": "지수는 서울에서 학교를 다녀요",
    "arabic": "تحب ليلى القهوة في الصباح",
    "hebrew": "דנה גרה בתל אביב",
    "hindi": "राम को आम पसंद है",
    "french": "José préfère le café crème à Orléans",
    "german": "Jürgen mag Käsespätzle und die Straße",
    "turkish": "Işıl İzmir'de yaşıyor",
    "vietnamese": "Phở ở Hà Nội rất ngon",
    "emoji": "Party at Ivan's 🎉 bring snacks",
    "apostrophe": "Don't mix Judy's keys with O'Brien's",
    "fullwidth": "Model ＡＢＣ１２３ is broken",
    "quotes": 'He said "never again" \\ \' ; DROP TABLE',
    "tagged": "Something else entirely",
}
FIELDS = {"tagged": {"tags": ["quarterly-review", "Ökologie"], "category": "project-context/moon-base"}}
QUERIES_BY_NAME = {
    "short": ["AI", "ai"],
    "c-sharp": ["C#", "c#"],
    "c-plus": ["C++"],
    "plain c": ["C"],
    "zone": ["UTC-6", "utc-6"],
    "other zone": ["UTC+3"],
    "ticket": ["INC-20417", "20417"],
    "version": ["v1.26.4", "1.26.4"],
    "number": ["1250.75", "1,250.75"],
    "year": ["1906-12-09", "1906"],
    "time": ["09:30"],
    "mail": ["heidi@example.org", "heidi"],
    "path": ["settings.toml", "/etc/loci"],
    "snake": ["parse_http_header"],
    "camel": ["HttpHeaderParser", "deprecated parser"],
    "russian": ["иван", "ПОЕЗДА", "елки"],
    "ukrainian": ["Київ"],
    "greek": ["αθηνα"],
    "chinese": ["火车", "北京"],
    "japanese": ["東京", "タワー"],
    "katakana": ["コーヒー", "ｺｰﾋｰ"],
    "thai": ["ปลา", "แมว"],
    "korean": ["서울", "학교"],
    "arabic": ["القهوة"],
    "hebrew": ["תל אביב"],
    "hindi": ["आम"],
    "french": ["cafe", "CAFÉ", "jose", "Orleans"],
    "german": ["kasespatzle", "STRASSE"],
    "turkish": ["izmir"],
    "vietnamese": ["ha noi", "Phở"],
    "emoji": ["snacks", "🎉"],
    "apostrophe": ["judy", "o'brien"],
    "fullwidth": ["abc123"],
    "quotes": ["never again", "drop table"],
    "tagged": ["quarterly review", "ökologie", "moon base", "moon-base"],
}
QUERIES = [(query, name) for name, queries in QUERIES_BY_NAME.items() for query in queries] + [("东京", None)]
QUERIES_WITHOUT_HITS = ["", " ", "...", "-", "'", "\\", "& | ! ( )", ":*", "<->", "what is the", "zzz-unsaid"]


@pytest.fixture(scope="module")
async def multilingual_gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """Yield the gateway of a tenant with memories in many languages."""
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        memories = [{"content": content} | FIELDS.get(name, {}) for name, content in CONTENTS.items()]
        body = {"memories": memories}
        response = await gateway.client.post("/v1/memories/batch", json=body)
        assert response.status_code == HTTPStatus.CREATED
        assert not [memory for memory in response.json()["results"] if "content" not in memory]
        yield gateway


@pytest.fixture(scope="module")
async def without_qdrant(multilingual_gateway: Gateway) -> AsyncIterator[Agent]:
    """Yield an agent of the same tenant at a gateway that cannot reach Qdrant."""
    async with beside(multilingual_gateway, qdrant_url="http://127.0.0.1:9") as agent:
        yield agent


@pytest.mark.parametrize(("query", "expected"), QUERIES)
async def test_a_word_is_found_in_the_index(
    multilingual_gateway: Gateway, query: str, expected: str | None
) -> None:
    contents = await Agent(multilingual_gateway.client, multilingual_gateway.tenant).search_contents(query)
    assert contents[:1] == ([CONTENTS[expected]] if expected else [])


@pytest.mark.parametrize(("query", "expected"), QUERIES)
async def test_a_word_is_found_without_the_index(
    without_qdrant: Agent, query: str, expected: str | None
) -> None:
    """IX4: Qdrant and Postgres must use the same tokenizer, or the fallback would miss words."""
    response = await without_qdrant.search(query)
    assert (response["stages"], response["degraded"]) == (["postgres"], ["index"])
    assert [memory["content"] for memory in response["results"]][:1] == (
        [CONTENTS[expected]] if expected else []
    )


async def test_the_index_and_postgres_find_the_same_memories(
    multilingual_gateway: Gateway, without_qdrant: Agent
) -> None:
    agent = Agent(multilingual_gateway.client, multilingual_gateway.tenant)
    for query, _ in QUERIES:
        assert set(await agent.search_contents(query, limit=100)) == set(
            await without_qdrant.search_contents(query, limit=100)
        ), query


async def test_a_query_without_words_finds_nothing_and_is_not_an_error(
    multilingual_gateway: Gateway, without_qdrant: Agent
) -> None:
    agent = Agent(multilingual_gateway.client, multilingual_gateway.tenant)
    for query in QUERIES_WITHOUT_HITS:
        for searcher in (agent, without_qdrant):
            response = await searcher.search(query, limit=50)
            is_blank = not query.strip()
            assert response["stages"] == (["newest"] if is_blank else response["stages"])
            if query != "what is the":
                assert len(response["results"]) == (len(CONTENTS) if is_blank else 0), query


async def test_adjacent_words_rank_above_the_same_words_apart(agent: Agent, without_index: Agent) -> None:
    """LT6: pairs of neighbouring words of the query count, too."""
    apart = await agent.save("The red team met a giant panda")
    together = await agent.save("The giant met a red panda team")
    for searcher in (agent, without_index):
        ids = [memory["id"] for memory in (await searcher.search("red panda"))["results"]]
        assert ids == [together["id"], apart["id"]]


async def test_a_rare_word_counts_more_than_a_common_one(agent: Agent) -> None:
    for n in range(8):
        await agent.save(f"ordinary meeting number {n}")
    rare = await agent.save("marmalade")
    assert (await agent.search_contents("ordinary marmalade meeting"))[-1] != rare["content"]
    assert (await agent.search_contents("marmalade number"))[0] == rare["content"]


async def test_a_very_long_query_is_answered(agent: Agent, without_index: Agent) -> None:
    await agent.save("needle in a haystack")
    query = "needle " + "hay " * 3000
    for searcher in (agent, without_index):
        assert await searcher.search_contents(query) == ["needle in a haystack"]


async def test_the_longest_content_is_found_by_its_last_word(agent: Agent, without_index: Agent) -> None:
    content = " ".join(f"w{n}" for n in range(2700))[:15_990] + " lastword"
    memory = await agent.save(content)
    for searcher in (agent, without_index):
        assert [result["id"] for result in (await searcher.search("lastword"))["results"]] == [memory["id"]]
