"""Every condition of the statements on sessions: whose sessions they reach, and at which moment."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from shared.conversation.observations.table import observation as observation_table
from shared.conversation.sessions import queries, usage_queries
from shared.conversation.sessions.filters import SessionFilters
from shared.conversation.sessions.session import Session
from shared.conversation.sessions.table import session as session_table
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres import seconds
from shared.infra.transaction import Transaction
from shared.platform.spend.charge import Charge, ChargeState
from tests.conftest import Gateway

IDLE = 60.0


@dataclass
class Sessions:
    """One transaction of a tenant. Its time stands still, so that boundaries can be met exactly."""

    tx: Transaction
    tenant: str

    @property
    def caller(self) -> Caller:
        return Caller("k", self.tenant, frozenset())

    async def add(self, session_id: str, **fields: Any) -> bool:
        defaults = {
            "kind": "session",
            "agent_id": "a",
            "store_types": [],
            "namespace": f"session/{session_id}",
        }
        return await queries.insert_session(
            self.tx, {"tenant": self.tenant, "id": session_id, **defaults, **fields}
        )

    async def set(self, session_id: str, **values: Any) -> None:
        where = (session_table.c.tenant == self.tenant, session_table.c.id == session_id)
        await self.tx.execute(update(session_table).where(*where).values(values))

    async def use(self, session_id: str, *, turns: int, seconds_ago: float) -> None:
        """Let a session have had turns, the last one some seconds ago."""
        await self.set(
            session_id, last_seq=turns, turn_count=turns, last_turn_at=func.now() - seconds(seconds_ago)
        )

    async def get(self, session_id: str, caller: Caller | None = None) -> Session | None:
        return await queries.get(self.tx, caller or self.caller, session_id, IDLE)

    async def existing(self, session_id: str) -> Session:
        session = await self.get(session_id)
        assert session is not None
        return session

    async def column(self, session_id: str, name: str) -> Any:
        where = (session_table.c.tenant == self.tenant, session_table.c.id == session_id)
        return await self.tx.scalar(select(session_table.c[name]).where(*where))

    async def now(self) -> Any:
        return await self.tx.scalar(select(func.now()))


@pytest.fixture
async def sessions(gateway: Gateway) -> AsyncIterator[Sessions]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        yield Sessions(tx, gateway.tenant)


async def test_a_session_is_inserted_unless_its_id_exists_in_some_spelling(sessions: Sessions) -> None:
    assert await sessions.add("trip") is True
    assert await sessions.add("TRIP") is False
    assert await sessions.get("TRIP") is None


async def test_a_session_is_seen_by_the_keys_that_may_read_it_until_it_expires(sessions: Sessions) -> None:
    await sessions.add("trip", user_id="ada")
    await sessions.add("other", user_id="ada")
    assert (await sessions.existing("trip")).id == "trip"
    bound = Caller("k", sessions.tenant, frozenset(), user_id="bob")
    assert await sessions.get("trip", bound) is None
    assert await queries.get_in_any_spelling(sessions.tx, bound, "Trip", IDLE) is None
    await sessions.set("trip", expires_at=func.now())
    assert await sessions.get("trip") is None, "it expires at its time and not after it"
    expired = await queries.get_in_any_spelling(sessions.tx, sessions.caller, "TRIP", IDLE)
    assert expired is not None
    assert (expired.id, expired.is_expired) == ("trip", True)
    await sessions.set("trip", expires_at=func.now() + seconds(1))
    assert (await sessions.existing("trip")).is_expired is False
    assert await queries.get_in_any_spelling(sessions.tx, sessions.caller, "trips", IDLE) is None


async def test_a_window_has_expired_when_the_session_was_idle_for_longer_than_the_time(
    sessions: Sessions,
) -> None:
    await sessions.add("trip")
    assert (await sessions.existing("trip")).window_expired is False, "no turn yet"
    for idle, is_expired in ((IDLE, False), (IDLE + 0.001, True)):
        await sessions.use("trip", turns=1, seconds_ago=idle)
        assert (await sessions.existing("trip")).window_expired is is_expired


async def test_records_of_an_expired_session_are_not_seen(sessions: Sessions) -> None:
    values = {"kind": "note", "content": "x", "agent_id": "a", "tags": [], "metadata": {}, "search_terms": ""}
    for session_id in ("over", "open"):
        await sessions.add(session_id)
        row = {"tenant": sessions.tenant, "id": session_id, "session_id": session_id, **values}
        await sessions.tx.execute(insert(observation_table).values(row))
    await sessions.set("over", expires_at=func.now())
    await sessions.set("open", expires_at=func.now() + seconds(1))
    is_live = queries.session_is_live(observation_table)
    where = (observation_table.c.tenant == sessions.tenant, is_live)
    seen = await sessions.tx.scalars(select(observation_table.c.id).where(*where))
    assert list(seen) == ["open"]


async def test_pages_are_newest_first_and_of_one_moment_by_id(sessions: Sessions) -> None:
    for session_id in ("b", "a", "new", "c"):
        await sessions.add(session_id)
    await sessions.set("new", created_at=func.now() + seconds(1))
    await sessions.add("of-another-agent", agent_id="z")
    assert await _ids_by_page(sessions, SessionFilters("a")) == ["new", "a", "b", "c"]
    assert await _ids_by_page(sessions, SessionFilters("z")) == ["of-another-agent"]


async def _ids_by_page(sessions: Sessions, filters: SessionFilters) -> list[str]:
    found: list[Session] = []
    for _ in range(5):
        after = (found[-1].created_at, found[-1].id) if found else None
        page = (sessions.tx, sessions.caller, IDLE, 1, after, filters)
        found += await queries.list_page(*page)
    return [session.id for session in found]


async def test_a_page_has_the_sessions_that_the_key_is_bound_to(sessions: Sessions) -> None:
    await sessions.add("adas", user_id="ada")
    await sessions.add("bobs", user_id="bob")
    bound = Caller("k", sessions.tenant, frozenset(), user_id="bob")
    page = await queries.list_page(sessions.tx, bound, IDLE, 9, None, SessionFilters())
    assert [session.id for session in page] == ["bobs"]


async def test_a_worker_locks_a_session_that_has_not_expired(sessions: Sessions) -> None:
    await sessions.add("trip", user_id="ada")
    locked = await queries.lock_by_id(sessions.tx, "trip", IDLE)
    assert locked is not None
    assert (locked.id, locked.user_id) == ("trip", "ada")
    await sessions.set("trip", expires_at=func.now())
    assert await queries.lock_by_id(sessions.tx, "trip", IDLE) is None


async def test_a_change_of_the_log_counts_its_turns_and_makes_caches_out_of_date(sessions: Sessions) -> None:
    async def numbers() -> list[int]:
        counts = [await sessions.column("trip", name) for name in ("turn_count", "last_seq")]
        return [*counts, await sessions.column("trip", "log_revision") - first_revision]

    await sessions.add("trip")
    first_revision = await sessions.column("trip", "log_revision")
    for change, expected in (
        ({}, [0, 0, 1]),
        ({"more_turns": 2, "last_seq": 5}, [2, 5, 2]),
        ({"more_turns": -1, "last_seq": 3}, [1, 5, 3]),
    ):
        await queries.note_log_change(sessions.tx, "trip", **change)
        assert await numbers() == expected


async def test_the_time_since_the_last_turn_is_that_of_the_session(sessions: Sessions) -> None:
    for session_id in ("trip", "other"):
        await sessions.add(session_id)
    session = await sessions.existing("trip")
    assert await queries.seconds_since_turn(sessions.tx, session) == 0
    await sessions.use("other", turns=1, seconds_ago=9)
    await sessions.use("trip", turns=1, seconds_ago=5)
    assert await queries.seconds_since_turn(sessions.tx, session) == 5


async def test_sequence_numbers_are_reserved_in_a_row_and_renew_the_expiry(sessions: Sessions) -> None:
    await sessions.add("trip", ttl_seconds=60, expires_at=func.now() + seconds(1))
    await sessions.add("other")
    session = await sessions.existing("trip")
    firsts = [await queries.reserve_seqs(sessions.tx, session, count) for count in (1, 3, 2)]
    assert firsts == [1, 2, 5]
    assert await sessions.column("trip", "last_seq") == 6
    assert await sessions.column("trip", "last_turn_at") == await sessions.now()
    assert await sessions.column("trip", "expires_at") == await sessions.now() + timedelta(seconds=60)
    await queries.reserve_seqs(sessions.tx, await sessions.existing("other"), 1)
    assert await sessions.column("other", "expires_at") is None


async def test_the_expiry_is_renewed_of_a_session_with_a_time_to_live(sessions: Sessions) -> None:
    for session_id, ttl in (("trip", 60), ("other", 60), ("endless", None)):
        await sessions.add(session_id, ttl_seconds=ttl, expires_at=func.now() + seconds(1))
    for session_id in ("trip", "endless"):
        await queries.renew_expiry(sessions.tx, await sessions.existing(session_id))
    now = await sessions.now()
    remaining = {
        name: await sessions.column(name, "expires_at") - now for name in ("trip", "other", "endless")
    }
    assert {name: time.total_seconds() for name, time in remaining.items()} == {
        "trip": 60,
        "other": 1,
        "endless": 1,
    }


async def test_sessions_to_delete_are_locked_by_id_by_owner_or_because_they_expired(
    sessions: Sessions,
) -> None:
    await sessions.add("ada-1", user_id="ada")
    await sessions.add("ada-2", user_id="ada", agent_id="b", expires_at=func.now())
    await sessions.add("bob-1", user_id="bob", agent_id="b", expires_at=func.now() + seconds(1))
    tx = sessions.tx
    assert _ids(await queries.lock(tx, ["bob-1", "ada-1", "none"])) == ["ada-1", "bob-1"]
    assert _ids(await queries.lock_of(tx, user_id="ada")) == ["ada-1", "ada-2"]
    assert _ids(await queries.lock_of(tx, user_id="ada", limit=1)) == ["ada-1"]
    assert _ids(await queries.lock_of(tx, agent_id="b")) == ["ada-2", "bob-1"]
    assert _ids(await queries.lock_expired(tx, 10)) == ["ada-2"]
    assert await queries.lock_existing(tx, ["ada-1", "none"]) == {"ada-1"}
    assert await queries.lock_existing(tx, []) == set()


def _ids(sessions: list[queries.LockedSession]) -> list[str]:
    return [session.id for session in sessions]


async def test_a_session_whose_text_is_copied_can_be_changed_and_not_deleted(gateway: Gateway) -> None:
    await gateway.client.post("/v1/sessions", json={"id": "trip"})
    postgres, tenant = gateway.resources.postgres, gateway.tenant
    where = (session_table.c.tenant == tenant, session_table.c.id == "trip")
    async with postgres.for_tenant(tenant) as copying:
        assert await queries.lock_existing(copying, ["trip"]) == {"trip"}
        async with postgres.for_tenant(tenant) as changing:
            await changing.execute(select(func.set_config("lock_timeout", "2s", True)))
            await changing.execute(update(session_table).where(*where).values(last_seq=7))
        assert await _is_locked(gateway, "trip")
    assert not await _is_locked(gateway, "trip")


async def test_expired_sessions_that_another_sweep_deletes_are_left_to_it(gateway: Gateway) -> None:
    postgres, tenant = gateway.resources.postgres, gateway.tenant
    for session_id in ("a", "b"):
        await gateway.client.post("/v1/sessions", json={"id": session_id})
    async with postgres.for_tenant(tenant) as tx:
        in_tenant = update(session_table).where(session_table.c.tenant == tenant)
        await tx.execute(in_tenant.values(expires_at=func.now()))
    async with postgres.for_tenant(tenant) as first:
        assert _ids(await queries.lock_expired(first, 1)) == ["a"]
        async with postgres.for_tenant(tenant) as second:
            await second.execute(select(func.set_config("lock_timeout", "2s", True)))
            assert _ids(await queries.lock_expired(second, 1)) == ["b"]


async def _is_locked(gateway: Gateway, session_id: str) -> bool:
    """Return whether a deletion would have to wait for a session."""
    statement = select(session_table.c.id).where(
        session_table.c.tenant == gateway.tenant, session_table.c.id == session_id
    )
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        rows = await tx.scalars(statement.with_for_update(skip_locked=True))
        return not list(rows)


async def test_a_session_is_locked_for_those_who_change_it_alone(gateway: Gateway) -> None:
    await gateway.client.post("/v1/sessions", json={"id": "trip"})
    postgres, caller = gateway.resources.postgres, Caller("k", gateway.tenant, frozenset())
    async with postgres.for_tenant(gateway.tenant) as reading:
        await queries.get(reading, caller, "trip", IDLE)
        assert not await _is_locked(gateway, "trip")
        await queries.get(reading, caller, "trip", IDLE, lock=True)
        assert await _is_locked(gateway, "trip")


async def test_sessions_are_idle_with_several_turns_and_none_of_late_in_exactly_one_scope(
    sessions: Sessions,
) -> None:
    scope = Scope(sessions.tenant, "a")
    for session_id, user_id in (("longer", None), ("idle", None), ("one-turn", None), ("adas", "ada")):
        await sessions.add(session_id, user_id=user_id)
        await sessions.use(session_id, turns=1 if session_id == "one-turn" else 2, seconds_ago=IDLE + 1)
    await sessions.use("longer", turns=9, seconds_ago=IDLE + 2)
    await sessions.add("active")
    await sessions.use("active", turns=2, seconds_ago=IDLE)
    assert await queries.list_idle(sessions.tx, scope, IDLE, 9) == ["longer", "idle"]
    assert await queries.list_idle(sessions.tx, scope, IDLE, 1) == ["longer"]


async def test_the_first_session_to_be_idle_is_waited_for(sessions: Sessions) -> None:
    scope = Scope(sessions.tenant, "a")
    for session_id, turns, ago in (("idle", 2, IDLE + 1), ("one-turn", 1, IDLE - 1)):
        await sessions.add(session_id)
        await sessions.use(session_id, turns=turns, seconds_ago=ago)
    assert await queries.seconds_until_idle(sessions.tx, scope, IDLE) is None
    for session_id, ago, remaining in (("late", 10.0, 50.0), ("early", 40.0, 20.0), ("now", IDLE, 0.0)):
        await sessions.add(session_id)
        await sessions.use(session_id, turns=2, seconds_ago=ago)
        assert await queries.seconds_until_idle(sessions.tx, scope, IDLE) == remaining


async def test_the_totals_of_a_session_are_the_sums_of_its_charges(sessions: Sessions) -> None:
    for session_id in ("trip", "other"):
        await sessions.add(session_id)
    await _charge(sessions, None)
    assert await sessions.column("trip", "total_cost_usd") is None
    await _charge(sessions, Decimal("0.5"))
    await _charge(sessions, None, Decimal("0.25"))
    await _charge(sessions)
    session = await sessions.existing("trip")
    assert session.spend is not None
    assert (session.spend["total_input_tokens"], session.spend["total_output_tokens"]) == (4, 8)
    assert (session.spend["total_cached_tokens"], session.spend["total_cost_usd"]) == (12, Decimal("0.75"))
    assert session.spend["unpriced"] == 2
    await usage_queries.add_charges(sessions.tx, "other", [])
    assert (await sessions.existing("other")).spend is None


async def _charge(sessions: Sessions, *costs: Decimal | None) -> None:
    charges = [
        Charge(
            tenant=sessions.tenant,
            id=str(number),
            session_id="trip",
            usage_id=str(number),
            agent_id="a",
            user_id=None,
            purpose="session",
            model="m",
            input_tokens=1,
            output_tokens=2,
            cached_tokens=3,
            cost_usd=cost,
            state=ChargeState.SETTLED,
            created_at=await sessions.now(),
        )
        for number, cost in enumerate(costs)
    ]
    await usage_queries.add_charges(sessions.tx, "trip", charges)
