"""Enrich raw entries: ask the model without a transaction open, record only if the claim still stands."""

from collections.abc import Sequence
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared import errors
from shared.clients.language_model import LanguageModel
from shared.directives import resolve
from shared.longterm import document, history, rows, save, store, tombstones
from shared.longterm.record import Draft, Entry
from shared.resources import Resources
from shared.spend import ask as spend
from shared.spend.record import Payer, Purpose
from shared.stages import ENRICH, ReasonCode, State
from shared.work import store as work
from shared.work import tallies
from shared.work.store import Claim
from workers import claims as loop
from workers.claims import Worked
from workers.enrichment import items, prompt
from workers.slots import Free, Slots

ACTOR = "enrichment"
BAD_REPLIES = 2
"""A reply that can't be used is asked for once more; the same question rarely mends on the third."""
log = structlog.get_logger()


async def enrich_all(resources: Resources) -> Worked:
    """Enrich what is due, no more at once in this process than the model may be asked at once."""
    return await _slots.work_off(resources, resources.settings.llm_concurrency)


async def enrich(resources: Resources, claim: Claim, free: Free) -> None:
    """Work on one claimed entry; `free` its slot once the model has answered."""
    model = resources.language_model
    async with resources.postgres.tenant(claim.tenant) as connection:
        raw = next(iter(await store.read(connection, claim.tenant, [claim.ref])), None)
        rules = await resolve.current(connection, resources.settings, claim.tenant, "memory-rules")
    if raw is None or raw.state is not State.PENDING:
        await _drop(resources, claim)
        return
    if model is None:
        await settle(resources, claim, State.FINAL, None)
        return
    try:
        found = await _ask(resources, model, raw, prompt.system(rules.text))
    except errors.OverBudget as over:
        await settle(resources, claim, State.KEPT_RAW, str(over))
    except errors.Unavailable as away:
        await _not_now(resources, claim, away)
    except errors.BadReply as bad:
        await _not_so(resources, claim, bad)
    else:
        free()
        await _record(resources, claim, found)


_slots = Slots(ENRICH, enrich)


async def _ask(resources: Resources, model: LanguageModel, raw: Entry, system: str) -> list[Draft]:
    payer = Payer(raw.tenant, raw.agent_id, raw.user_id, Purpose.ENRICHMENT)
    answer = await spend.ask(resources, model, payer, system, prompt.user(raw))
    return items.drafts(answer.text, raw, system)


async def _not_now(resources: Resources, claim: Claim, away: errors.Unavailable) -> None:
    if claim.attempts >= resources.settings.work_attempts:
        await settle(resources, claim, State.FAILED, str(away))
    else:
        await loop.put_off(resources, ENRICH, [claim], away)


async def _not_so(resources: Resources, claim: Claim, bad: errors.BadReply) -> None:
    if claim.attempts >= BAD_REPLIES:
        await settle(resources, claim, State.FAILED, str(bad))
    else:
        error = errors.Unavailable("language model", str(bad))
        await loop.put_off(resources, ENRICH, [claim], error, ReasonCode.INVALID_REPLY)


async def _drop(resources: Resources, claim: Claim) -> None:
    async with resources.postgres.fleet() as connection:
        await work.finish(connection, [claim])


async def settle(resources: Resources, claim: Claim, state: State, reason: str | None) -> None:
    """Leave an entry as it was written, in the state that says why."""
    async with resources.postgres.tenant(claim.tenant) as connection:
        await store.lock(connection, claim.tenant, [claim.ref])
        if claim.id not in await work.finish(connection, [claim]):
            return
        values = {"state": state, "failure": reason}
        entry = await store.change(connection, claim.tenant, claim.ref, values)
        await history.note(connection, ACTOR, state, [entry], reason)
        await tallies.count(connection, "enrichments", {state: 1})


async def _record(resources: Resources, claim: Claim, found: Sequence[Draft]) -> None:
    """Put the focused entries in the raw one's place, in one transaction."""
    async with resources.postgres.tenant(claim.tenant) as connection:
        # The entry before its work row, as those who change or forget it do: else each waits for the other.
        locked = await store.lock(connection, claim.tenant, [claim.ref])
        if claim.id not in await work.finish(connection, [claim]):
            return  # edited, deleted or taken over meanwhile: this answer is about what no longer stands
        raw = next(iter(locked), None)
        if raw is None or raw.state is not State.PENDING:
            return
        kept = await _without_forgotten(connection, raw, found)
        changed = await _replace(connection, raw, kept) if kept else []
        if not kept:
            entry = await store.change(connection, claim.tenant, raw.id, {"state": State.KEPT_RAW})
            await history.note(connection, ACTOR, State.KEPT_RAW, [entry])
        await tallies.count(connection, "enrichments", {"enriched" if kept else State.KEPT_RAW: 1})
        claims = await save.hand_on(connection, claim.tenant, changed)
    await resources.writer.write_through([document.document(entry) for entry in changed], claims)


async def _without_forgotten(connection: AsyncConnection, raw: Entry, found: Sequence[Draft]) -> list[Draft]:
    """Leave out what was deleted on purpose: a model must not bring it back."""
    if not found:
        return []
    gone = await tombstones.forgotten(connection, raw.scope, [draft.content for draft in found])
    return [draft for draft in found if draft.content not in gone]


async def _replace(connection: AsyncConnection, raw: Entry, kept: Sequence[Draft]) -> list[Entry]:
    """Archive the raw entry first, for a successor may say the very same; return all that changed."""
    await store.archive(connection, raw.tenant, [raw.id], "enriched", [])
    saved = await store.upsert(connection, raw.scope, [_row(raw, draft) for draft in kept])
    successors = [Entry.of(row) for row in saved]
    ids = [entry.id for entry in successors]
    archived = await store.change(connection, raw.tenant, raw.id, {"superseded_by": ids})
    await history.note(connection, ACTOR, "created", [Entry.of(row) for row in saved if row["inserted"]])
    await history.note(
        connection, ACTOR, "reinforced", [Entry.of(row) for row in saved if not row["inserted"]]
    )
    await history.note(connection, ACTOR, "archived", [archived], f"enriched into {', '.join(ids)}")
    return [archived, *(Entry.of(row) for row in saved if row["inserted"])]


def _row(raw: Entry, draft: Draft) -> dict[str, Any]:
    return rows.of_draft(
        draft,
        sources=[source.model_dump() for source in raw.sources],
        derived_from=[raw.id],
        reinforcement_count=raw.reinforcement_count,
        created_at=raw.created_at,
        last_seen_at=raw.last_seen_at,
    )
