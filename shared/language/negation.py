"""Find negations that a merged text adds or loses: "likes tea" is no short form of "doesn't like tea".

A denial is a negative word together with the content words near it. Each denial of a source must match one
of the text that shares a word with it, and the reverse, so that of two facts the denied one stays denied.
"Dislikes", "avoids" and "without" deny as "not" does; "not allergic" denies a denial, and matches no other.
That something is no longer so is a denial as any other. Only a merge may add it, because of an old fact and
a new one that is what it should say; not if one of them is about health.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shared.foundation.sensitive_topics import is_about_health
from shared.language import common_words
from shared.search.text import tokenizer

_PLAIN_WORDS = """
    not no never none nothing nobody neither nor cannot without don't doesn't didn't won't can't couldn't
    shouldn't wouldn't isn't aren't wasn't weren't hasn't haven't hadn't mustn't needn't ain't dont doesnt
    didnt wont cant isnt arent wasnt unable except
    nicht kein keine keinen keinem keiner keines nie niemals nichts niemand ohne weder
    ne pas jamais aucun aucune rien personne sans
    nunca jamás sin ningún ninguno ninguna nada nadie tampoco
    non senza niente nessuno nessuna
    não nem sem nenhum nenhuma ninguém
    niet geen nooit niets niemand zonder
    inte aldrig ingen inget utan ikke aldri uten
    \u043d\u0435 \u043d\u0435\u0442 \u043d\u0438\u043a\u043e\u0433\u0434\u0430 \u0431\u0435\u0437 \u043d\u0438
    \u043d\u0438\u0447\u0435\u0433\u043e \u043d\u0438\u043a\u0442\u043e
    لا لم لن ليس לא אין בלי नहीं मत
"""
_VERBS_AND_ADJECTIVES = """
    dislike dislikes disliked avoid avoids avoided avoiding refuse refuses refused hate hates hated forbid
    forbids forbidden prohibit prohibits prohibited reject rejects rejected
    allergic allergy allergies intolerant allergisch allergique allergiques alérgico alérgica allergico
    allergica allergiek allergisk
    hasst vermeidet déteste évite odia evita
"""
_DENYING_WORDS = frozenset(_VERBS_AND_ADJECTIVES.split())
_PLAIN = frozenset(_PLAIN_WORDS.split())
_NEGATIVE = _PLAIN | _DENYING_WORDS
# What may stand between a negation and the denying word that it denies: "no longer allergic".
_BETWEEN = frozenset(
    {"longer", "more", "really", "actually", "known", "been", "any", "anymore"}
    | {"mehr", "plus", "ya", "più", "mais", "meer"}
)
# Everyday verbs. Two unrelated denials often share one, so it doesn't show that they match.
_GENERIC_VERBS = frozenset(
    tokenizer.tokenize(
        "like love want use used eat drink prefer have know need go get make take work allow permit accept"
    )
)
_ANSWERS = """
    no nope nah never not wrong incorrect false nein nee nö nicht falsch nie non não nej nei ne
    \u043d\u0435\u0442 \u043d\u0456 hayir
"""
_DENYING = frozenset(_ANSWERS.split())
_ANSWER = re.compile(r"\W*(\w+)\s*[,.!;:\u2013\u2014-]")
_AGREEING = frozenset({("no", "problem"), ("no", "worries"), ("no", "doubt"), ("not", "only")})
_UNSPACED_ANSWERS = ("\u4e0d", "いいえ", "違", "아니")
_ANSWER_CHARACTERS = 100
_ENDED = frozenset({"longer", "anymore", "mehr", "plus", "ya"})
_STOPPED = re.compile(r"\b(?:stop(?:s|ped)|quit|gave up|given up)(?= \w+ing\b)")
_SAYS_NOTHING = _ENDED | tokenizer.QUESTION_WORDS
_WINDOW = 6
_CLAUSE_END = re.compile(
    r"(?<!\bdr)(?<!\bmr)(?<!\bmrs)(?<!\bms)(?<!\bprof)(?<!\bst)\.|[!?;:\n\u2026\u2013\u2014]|,?\s(?:but|however|though|aber|sondern|mais|pero|ma|maar)\s"
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
# Negations of scripts without spaces: before the denied word in Chinese, after it in Japanese and Korean.
_UNSPACED = re.compile("[不没沒無无未别別勿]|ない|なかった|ません|なし|ไม่|않|못|없")
_NEAR = 3
# A prefix that denies the word after it, in many languages.
_OPPOSITE = re.compile(r"(?:un|in|im|ir|il|dis|non|des|dés|mis)(?=\w{4})")


@dataclass(frozen=True, slots=True)
class Denial:
    """A negative word in its wording, the stems near it, and whether it says that something has ended.

    `denies_denial` says that it denies a denying word: "not allergic". `subject_stems` are before the
    negative word. If nothing follows it, or only an everyday verb ("Dogs don't", "Tabs must not be used"),
    they tell what is denied.
    """

    wording: str
    near_stems: frozenset[str]
    has_ended: bool = False
    subject_stems: frozenset[str] = frozenset()
    denies_denial: bool = False

    @property
    def is_shown_by_subject(self) -> bool:
        """Whether what follows the negative word does not tell what is denied."""
        return self.near_stems <= self.subject_stems | _GENERIC_VERBS


def denies(text: str) -> bool:
    """Tell whether a text has a word that denies: not, never, nobody, without."""
    words = _WORD.findall(_STOPPED.sub("no longer", text.casefold().replace("\u2019", "'")))
    is_denied = any(word in _PLAIN or word.startswith("n'") for word in words)
    return is_denied or _UNSPACED.search(text) is not None


def is_denying_answer(answer: str) -> bool:
    """Tell whether an answer begins by denying what it is an answer to: "No, not at all."."""
    plain = answer.casefold().strip()
    first, second, *_ = [*_WORD.findall(plain[:_ANSWER_CHARACTERS]), "", ""]
    is_denial = first in _DENYING or plain.startswith(_UNSPACED_ANSWERS)
    return is_denial and (first, second) not in _AGREEING


def without_answer(text: str) -> str:
    """Return a text without the "No," at its beginning, which denies what was said before."""
    answer = _ANSWER.match(text[:_ANSWER_CHARACTERS])
    return text[answer.end() :] if answer and answer[1].casefold() in _DENYING else text


def changed_negations(content: str, sources: Sequence[str]) -> list[str]:
    """Return the wordings of what is denied in the sources or in the text, but not in both."""
    text_denials = list(_denials(content))
    source_denials = [denial for source in sources for denial in _denials(source)]
    may_have_ended = not any(map(is_about_health, sources))
    added_denials = (denial for denial in text_denials if not (denial.has_ended and may_have_ended))
    return [
        *_unmatched(source_denials, text_denials),
        *_unmatched(added_denials, source_denials),
        *_changed_opposites(content, frozenset[str]().union(*map(_words_of, sources))),
    ]


def lost_negations(content: str, sources: Sequence[str]) -> list[str]:
    """Return the wordings of what is denied in the sources and not in the text."""
    source_denials = [denial for source in sources for denial in _denials(source)]
    return _unmatched(source_denials, list(_denials(content)))


def contradicted_words(content: str, sources: Sequence[str]) -> list[str]:
    """Return the wordings of what a text denies and no source does, or of what it says and they deny.

    A text that says only a part of its sources may leave a denial out, with all that is denied.
    """
    denials = [denial for source in sources for denial in _denials(source)]
    said_stems = [stems for source in sources for stems in _stems_without_denial(source)]
    text_denials, text_stems = list(_denials(content)), frozenset(tokenizer.tokenize(content))
    repeated_denials = [
        denial
        for denial in denials
        if denial.near_stems <= text_stems and not any(denial.near_stems <= stems for stems in said_stems)
    ]
    return [
        *_unmatched(repeated_denials, text_denials),
        *_unmatched(text_denials, denials),
        *_changed_opposites(content, frozenset[str]().union(*map(_words_of, sources))),
    ]


def _stems_without_denial(text: str) -> Iterator[frozenset[str]]:
    """Yield the stems of each clause in which nothing is denied."""
    for clause in _CLAUSE_END.split(text.casefold().replace("\u2019", "'")):
        if not any(_denials(clause)):
            yield frozenset(tokenizer.tokenize(clause))


def _changed_opposites(content: str, source_words: frozenset[str]) -> list[str]:
    """Return the words of one side of which the other has the opposite: "unfurnished" and "furnished"."""
    text_words = _words_of(content)
    return [*_opposed(source_words, text_words), *_opposed(text_words, source_words)]


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _opposed(words: frozenset[str], others: frozenset[str]) -> list[str]:
    return [
        word
        for word in sorted(words - others)
        if (prefix := _OPPOSITE.match(word))
        and (base := word[prefix.end() :]) in others
        and base not in words
    ]


def _unmatched(denials: Iterable[Denial], others: Sequence[Denial]) -> list[str]:
    return [
        denial.wording
        for denial in denials
        if denial.near_stems and not any(_match(denial, other) for other in others)
    ]


def _match(denial: Denial, other: Denial) -> bool:
    if denial.denies_denial is not other.denies_denial:
        return False
    if denial.near_stems & other.near_stems:
        return True
    return bool(
        (denial.is_shown_by_subject and denial.subject_stems & (other.near_stems | other.subject_stems))
        or (other.is_shown_by_subject and other.subject_stems & (denial.near_stems | denial.subject_stems))
    )


def _denials(text: str) -> Iterator[Denial]:
    plain = _STOPPED.sub("no longer", text.casefold().replace("\u2019", "'"))
    for clause in _CLAUSE_END.split(plain):
        words = _WORD.findall(clause)
        for position, word in enumerate(words):
            if word in _NEGATIVE or word.startswith("n'"):
                yield _denial_at(words, position)
    for match in _UNSPACED.finditer(plain):
        before = plain[max(0, match.start() - _NEAR) : match.start()]
        after = plain[match.end() : match.end() + _NEAR]
        yield Denial(match[0], frozenset(character for character in before + after if character.isalnum()))


def _denial_at(words: Sequence[str], position: int) -> Denial:
    after = words[position + 1 : position + 1 + _WINDOW]
    subject_stems = _content_stems(words[max(0, position - _WINDOW) : position])
    wording = " ".join([words[position], *after[:3]])
    near_stems = _content_stems(after) or subject_stems
    has_ended = not _ENDED.isdisjoint(after)
    denies_denial = _denies_denial(words[position], after)
    return Denial(wording, near_stems, has_ended, subject_stems, denies_denial)


def _denies_denial(word: str, after: Sequence[str]) -> bool:
    denied = next((other for other in after if other not in _BETWEEN), None)
    return word not in _DENYING_WORDS and denied in _DENYING_WORDS


def _content_stems(words: Sequence[str]) -> frozenset[str]:
    """Return the stems of what is denied: no generic subjects; everyday verbs only if only they are left."""
    stems = frozenset(tokenizer.tokenize(" ".join(word for word in words if word not in _SAYS_NOTHING)))
    stems -= common_words.GENERIC_SUBJECTS
    return stems - _GENERIC_VERBS or stems
