"""Enrich raw entries: ask the model without a transaction open, record only if the claim still stands."""

from collections.abc import Sequence
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.stages import ENRICH, ReasonCode, State
from shared.infra.language_model import LanguageModel
from shared.jobs import counters as fleet_counters
from shared.jobs import queries as job_queries
from shared.jobs.job import Claim
from shared.memory.longterm import history, new_rows, save, tombstones
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Draft, Entry
from shared.platform.directives import resolve
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls
from shared.platform.spend.charge import Payer, Purpose
from workers.enrichment import parse_reply, prompt
from workers.runtime import drain as job_drain
from workers.runtime.concurrent_drain import Free, Slots
from workers.runtime.drain import Worked

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
        raw = next(iter(await memory_queries.read(connection, claim.tenant, [claim.ref])), None)
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
    answer = await metered_calls.ask(resources, model, payer, system, prompt.user(raw))
    return parse_reply.drafts(answer.text, raw, system)


async def _not_now(resources: Resources, claim: Claim, away: errors.Unavailable) -> None:
    if claim.attempts >= resources.settings.work_attempts:
        await settle(resources, claim, State.FAILED, str(away))
    else:
        await job_drain.put_off(resources, ENRICH, [claim], away)


async def _not_so(resources: Resources, claim: Claim, bad: errors.BadReply) -> None:
    if claim.attempts >= BAD_REPLIES:
        await settle(resources, claim, State.FAILED, str(bad))
    else:
        error = errors.Unavailable("language model", str(bad))
        await job_drain.put_off(resources, ENRICH, [claim], error, ReasonCode.INVALID_REPLY)


async def _drop(resources: Resources, claim: Claim) -> None:
    async with resources.postgres.fleet() as connection:
        await job_queries.finish(connection, [claim])


async def settle(resources: Resources, claim: Claim, state: State, reason: str | None) -> None:
    """Leave an entry as it was written, in the state that says why."""
    async with resources.postgres.tenant(claim.tenant) as connection:
        await memory_queries.lock(connection, claim.tenant, [claim.ref])
        if claim.id not in await job_queries.finish(connection, [claim]):
            return
        values = {"state": state, "failure": reason}
        entry = await memory_queries.change(connection, claim.tenant, claim.ref, values)
        await history.note(connection, ACTOR, state, [entry], reason)
        await fleet_counters.count(connection, "enrichments", {state: 1})


async def _record(resources: Resources, claim: Claim, found: Sequence[Draft]) -> None:
    """Put the focused entries in the raw one's place, in one transaction."""
    async with resources.postgres.tenant(claim.tenant) as connection:
        # The entry before its work row, as those who change or forget it do: else each waits for the other.
        locked = await memory_queries.lock(connection, claim.tenant, [claim.ref])
        if claim.id not in await job_queries.finish(connection, [claim]):
            return  # edited, deleted or taken over meanwhile: this answer is about what no longer stands
        raw = next(iter(locked), None)
        if raw is None or raw.state is not State.PENDING:
            return
        kept = await _without_forgotten(connection, raw, found)
        changed = await _replace(connection, raw, kept) if kept else []
        if not kept:
            entry = await memory_queries.change(connection, claim.tenant, raw.id, {"state": State.KEPT_RAW})
            await history.note(connection, ACTOR, State.KEPT_RAW, [entry])
        await fleet_counters.count(connection, "enrichments", {"enriched" if kept else State.KEPT_RAW: 1})
        claims = await save.hand_on(connection, claim.tenant, changed)
    await resources.writer.write_through([memory_document.document(entry) for entry in changed], claims)


async def _without_forgotten(connection: AsyncConnection, raw: Entry, found: Sequence[Draft]) -> list[Draft]:
    """Leave out what was deleted on purpose: a model must not bring it back."""
    if not found:
        return []
    gone = await tombstones.forgotten(connection, raw.scope, [draft.content for draft in found])
    return [draft for draft in found if draft.content not in gone]


async def _replace(connection: AsyncConnection, raw: Entry, kept: Sequence[Draft]) -> list[Entry]:
    """Archive the raw entry first, for a successor may say the very same; return all that changed."""
    await memory_queries.archive(connection, raw.tenant, [raw.id], "enriched", [])
    saved = await memory_queries.upsert(connection, raw.scope, [_row(raw, draft) for draft in kept])
    successors = [Entry.of(row) for row in saved]
    ids = [entry.id for entry in successors]
    archived = await memory_queries.change(connection, raw.tenant, raw.id, {"superseded_by": ids})
    await history.note(connection, ACTOR, "created", [Entry.of(row) for row in saved if row["inserted"]])
    await history.note(
        connection, ACTOR, "reinforced", [Entry.of(row) for row in saved if not row["inserted"]]
    )
    await history.note(connection, ACTOR, "archived", [archived], f"enriched into {', '.join(ids)}")
    return [archived, *(Entry.of(row) for row in saved if row["inserted"])]


def _row(raw: Entry, draft: Draft) -> dict[str, Any]:
    return new_rows.of_draft(
        draft,
        sources=[source.model_dump() for source in raw.sources],
        derived_from=[raw.id],
        reinforcement_count=raw.reinforcement_count,
        created_at=raw.created_at,
        last_seen_at=raw.last_seen_at,
    )
