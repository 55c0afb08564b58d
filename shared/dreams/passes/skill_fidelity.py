"""Check that a proposed skill keeps what the skills that it stands for say, and invents nothing.

A skill that is only joined out of others adds no denial. One that is written better, after feedback, may: the
warning that it lacked.
"""

from collections.abc import Iterable, Sequence

from shared.dreams.verification.fidelity import Fault
from shared.dreams.verification.rejection import RejectionCode
from shared.language import negation, swaps
from shared.language.text_parser import parse_text

_MAX_WORDS = 30


def first_fault(
    content: str, summary: str, sources: Sequence[str], shown: str, *, may_deny: bool
) -> Fault | None:
    """Return the first fault of a skill, or None.

    `sources` are the contents of the skills that it stands for, `shown` is all that the model was shown;
    `may_deny` tells whether it may deny what none of the sources denies.
    """
    written = parse_text(content)
    lost = [word for source in sources for word in parse_text(source).missing_in(written)]
    if lost:
        return _fault(RejectionCode.LOSES_SPECIFICS, lost)
    find_denials = negation.lost_negations if may_deny else negation.changed_negations
    if sources and (denials := find_denials(content, sources)):
        return _fault(RejectionCode.CHANGES_NEGATION, denials)
    if sources and (swapped := swaps.swapped_words(content, sources)):
        return _fault(RejectionCode.SWAPS_SPECIFICS, swapped)
    if invented := parse_text(f"{summary}\n{content}").certain_missing_in(parse_text(shown)):
        return _fault(RejectionCode.ADDS_SPECIFICS, invented)
    return None


def _fault(code: RejectionCode, words: Iterable[str]) -> Fault:
    return Fault(code, _DETAILS[code], tuple(dict.fromkeys(words))[:_MAX_WORDS])


_DETAILS = {
    RejectionCode.LOSES_SPECIFICS: "it loses names, numbers or dates of the skills that it stands for",
    RejectionCode.CHANGES_NEGATION: "these are denied in it or in the skills that it stands for, not in both",
    RejectionCode.SWAPS_SPECIFICS: "these stand together otherwise in the skills that it stands for",
    RejectionCode.ADDS_SPECIFICS: "nothing that was shown has these",
}
