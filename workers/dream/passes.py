"""The passes of the queue `dream`, by name."""

from shared.foundation.stages import DreamPass
from workers.dream import (
    anti_patterns,
    consolidate,
    consolidate_graph,
    deduplicate,
    episodes,
    extract_entities,
    preferences,
    session_evaluation,
    skill_gaps,
    skill_revision,
)
from workers.passes.run_pass import Decide

PASSES: dict[DreamPass, Decide] = {
    DreamPass.DEDUPLICATE: deduplicate.run,
    DreamPass.EVALUATE_SESSIONS: session_evaluation.run,
    DreamPass.CONSOLIDATE: consolidate.run,
    DreamPass.MINE_ANTI_PATTERNS: anti_patterns.run,
    DreamPass.INFER_PREFERENCES: preferences.run,
    DreamPass.EXTRACT_EPISODES: episodes.run,
    DreamPass.EXTRACT_ENTITIES: extract_entities.run,
    DreamPass.CONSOLIDATE_GRAPH: consolidate_graph.run,
    DreamPass.DETECT_SKILL_GAPS: skill_gaps.run,
    DreamPass.CONSOLIDATE_SKILLS: skill_revision.consolidate,
    DreamPass.OPTIMISE_SKILLS: skill_revision.optimise,
}
