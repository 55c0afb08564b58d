"""Whether a "not" came or went: "likes tea" is no short form of "doesn't like tea".

A denial is a negative word with the telling words near it. Each denial of a source must meet one
of the text that shares a word with it, and the reverse, so that of two facts the one that is denied
stays the denied one. "Dislikes", "avoids" and "without" deny as "not" does. That something is no
longer so may be news of the text: of an old fact and a new one it is what a merge should say.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shared.dreams.verification import common_words
from shared.search.text import tokenizer

_WORDS = """
    not no never none nothing nobody neither nor cannot without don't doesn't didn't won't can't couldn't
    shouldn't wouldn't isn't aren't wasn't weren't hasn't haven't hadn't mustn't needn't ain't dont doesnt
    didnt wont cant isnt arent wasnt
    dislike dislikes disliked avoid avoids avoided avoiding refuse refuses refused hate hates hated forbid
    forbids forbidden prohibit prohibits prohibited reject rejects rejected unable except
    allergic allergy allergies intolerant allergisch
    nicht kein keine keinen keinem keiner keines nie niemals nichts niemand ohne weder hasst vermeidet
    ne pas jamais aucun aucune rien personne sans déteste évite
    nunca jamás sin ningún ninguno ninguna nada nadie tampoco odia evita
    non senza niente nessuno nessuna
    não nem sem nenhum nenhuma ninguém
    niet geen nooit niets niemand zonder
    inte aldrig ingen inget utan ikke aldri uten
    \u043d\u0435 \u043d\u0435\u0442 \u043d\u0438\u043a\u043e\u0433\u0434\u0430 \u0431\u0435\u0437 \u043d\u0438
    \u043d\u0438\u0447\u0435\u0433\u043e \u043d\u0438\u043a\u0442\u043e
    لا لم لن ليس לא אין בלי नहीं मत
"""
_NEGATIVE = frozenset(_WORDS.split())
# Verbs that what is liked, used or had is denied with: two facts share them.
_GENERIC = frozenset(
    tokenizer.tokenize("like love want use eat drink prefer have know need go get make take work")
)
_ENDED = frozenset({"longer", "anymore", "mehr", "plus", "ya"})
_WINDOW = 6
_CLAUSE_END = re.compile(
    r"[.!?;:\n\u2026\u2013\u2014]|,?\s(?:but|however|though|aber|sondern|mais|pero|ma|maar)\s"
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
# Written without spaces: in Chinese before what is denied, in Japanese and Korean at its end.
_UNSPACED = re.compile("[不没沒無无未别別勿]|ない|なかった|ません|なし|ไม่|않|못|없")
_NEAR = 3


@dataclass(frozen=True, slots=True)
class Denial:
    """A negative word, the stems near it, and whether it says that something came to an end."""

    shown: str
    near: frozenset[str]
    ended: bool = False


def changed_negations(content: str, sources: Sequence[str]) -> list[str]:
    """Return what is denied in the sources or in the text, but not in both."""
    said = list(_denials(content))
    told = [denial for text in sources for denial in _denials(text)]
    return _unmet(told, said) + _unmet((denial for denial in said if not denial.ended), told)


def _unmet(denials: Iterable[Denial], others: Sequence[Denial]) -> list[str]:
    return [one.shown for one in denials if one.near and not any(one.near & other.near for other in others)]


def _denials(text: str) -> Iterator[Denial]:
    plain = text.casefold().replace("\u2019", "'")
    for clause in _CLAUSE_END.split(plain):
        spoken = _WORD.findall(clause)
        for place, word in enumerate(spoken):
            if word in _NEGATIVE or word.startswith("n'"):
                yield _denial(spoken, place)
    for match in _UNSPACED.finditer(plain):
        around = (
            plain[max(0, match.start() - _NEAR) : match.start()] + plain[match.end() : match.end() + _NEAR]
        )
        yield Denial(match[0], frozenset(c for c in around if c.isalnum()))


def _denial(spoken: Sequence[str], place: int) -> Denial:
    after = spoken[place + 1 : place + 1 + _WINDOW]
    near = _telling(after) or _telling(spoken[max(0, place - _WINDOW) : place])
    return Denial(" ".join([spoken[place], *after[:3]]), near, ended=not _ENDED.isdisjoint(after))


def _telling(spoken: Sequence[str]) -> frozenset[str]:
    """Return the stems that tell what is denied: not who does it, nor an everyday verb if more is said."""
    stems = frozenset(tokenizer.tokenize(" ".join(w for w in spoken if w not in tokenizer.QUESTION_WORDS)))
    stems -= common_words.GENERIC_SUBJECTS
    return stems - _GENERIC or stems
