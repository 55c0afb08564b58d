"""The shape that the model's reply to each pass's directive has, for endpoints that take a JSON schema."""

from shared.foundation.reply_schema import (
    INTEGER,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    JsonSchema,
    array_of,
    object_of,
    one_of,
)

_TEXTS = array_of(TEXT)
_SOURCES = array_of(array_of({"type": ["string", "integer"]}))
_SKILLS = object_of(
    toSave=array_of(object_of(name=TEXT, summary=TEXT, content=TEXT, replaces=_TEXTS)), toDelete=_TEXTS
)

BY_DIRECTIVE: dict[str, JsonSchema] = {
    "dream": object_of(
        toDelete=array_of(object_of(id=TEXT, reason=one_of("ephemeral", "duplicate", "outdated"))),
        toSave=array_of(object_of(content=TEXT, category=TEXT_OR_NULL, tags=_TEXTS, sourceIds=_TEXTS)),
    ),
    "anti-patterns": object_of(
        toSave=array_of(object_of(content=TEXT, category=TEXT, tags=_TEXTS, sessionIds=_TEXTS))
    ),
    "pref-dream": object_of(
        occurrences=array_of(
            object_of(
                key=TEXT,
                content=TEXT,
                category=TEXT_OR_NULL,
                tags=_TEXTS,
                level=TEXT,
                sessionId=TEXT,
                seqs=array_of(INTEGER),
                quote=TEXT,
            )
        )
    ),
    "episodes": object_of(
        toSave=array_of(
            object_of(content=TEXT, category=TEXT, importance=NUMBER, tags=_TEXTS, sourceSessions=_TEXTS)
        ),
        toUpdate=array_of(object_of(id=TEXT, content=TEXT, importance=NUMBER, sourceSessions=_TEXTS)),
    ),
    "graph": object_of(
        entities=array_of(object_of(id=TEXT_OR_NULL, name=TEXT, type=TEXT, aliases=_TEXTS, sources=_SOURCES)),
        triples=array_of(
            object_of(
                subject=TEXT,
                predicate=TEXT,
                object=TEXT_OR_NULL,
                literal=TEXT_OR_NULL,
                fact=TEXT_OR_NULL,
                confidence=NUMBER,
                validAt=TEXT_OR_NULL,
                sources=_SOURCES,
            )
        ),
    ),
    "graph-consolidation": object_of(
        merge=array_of(object_of(keep=TEXT, drop=TEXT)),
        invalidate=array_of(object_of(id=TEXT, because=TEXT, reason=one_of("contradicted", "duplicate"))),
    ),
    "mine-facts": object_of(
        facts=array_of(
            object_of(
                content=TEXT,
                category=TEXT_OR_NULL,
                tags=_TEXTS,
                importance=NUMBER,
                relation=one_of("new", "same", "changed"),
                of=TEXT_OR_NULL,
                occurredAt=TEXT_OR_NULL,
                sources=_SOURCES,
                quotes=_TEXTS,
            )
        )
    ),
    "skill-gaps": object_of(
        toSave=array_of(object_of(name=TEXT, summary=TEXT, content=TEXT, sessionIds=_TEXTS))
    ),
    "skill-consolidation": _SKILLS,
    "skill-optimisation": _SKILLS,
    "session-evaluation": object_of(
        summary=TEXT,
        tools_worked_well=_TEXTS,
        tools_failed_or_missed=_TEXTS,
        corrections_made=INTEGER,
        overall_quality=TEXT,
    ),
}
