"""Find out whether a rewriting lost the last plain negation of a note.

`shared.language.negation` compares denials by the words near them. It takes "without" or
"allergic" for the "never" or "nicht" beside it. A note that says "not" in any way, and its rewriting in
none, do not say the same.
"""

import re

_NEGATORS = frozenset(
    """
    not no never none nothing nobody neither nor cannot dont doesnt didnt wont cant isnt arent wasnt ain't
    nicht kein keine keinen keinem keiner keines nie niemals nichts niemand weder
    ne pas jamais aucun aucune rien personne nunca jamás ningún ninguno ninguna nada nadie tampoco
    non niente nessuno nessuna mai não nem nenhum nenhuma ninguém niet geen nooit niets
    inte aldrig ingen inget ikke aldri ei nem nu nie nigdy nikt nic değil yok asla
    не нет никогда ни ничего никто ні немає δεν μην μη ποτέ κανείς τίποτα
    لا ولا لم لن ليس לא אין नहीं मत
    """.split()  # noqa: SIM905  (as a list it would fill a page)
)
_OTHERS = re.compile(
    r"dislik|avoid|refus|hate|forbid|prohibit|reject|unable|except|without|allerg|intoleran|not|"
    r"ohne|hasst|vermeid|sans|sin|senza|sem|zonder|utan|uten|без|against|gegen|contre|contra|instead|rather"
    r"|only|stop|quit|end|former|fail|declin|lack|miss|skip|free"
)
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_NUMBER_SIGN = re.compile(r"\b(?:no|nr)\.\s?(?=\d)", re.IGNORECASE)
_UNSPACED = re.compile("[不没沒無无未别別勿]|ない|なかった|ません|なし|ไม่|않|못|없|안 ")


def lost_negators(note: str, rewriting: str) -> list[str]:
    """Return the negators of the note if the rewriting has none, and denies in no other way either."""
    negators = _negators(note)
    if not negators or _negators(rewriting) or _count_others(rewriting) > _count_others(note):
        return []
    return negators


def _negators(text: str) -> list[str]:
    words = _WORD.findall(_NUMBER_SIGN.sub(" ", text.casefold()))
    plain = [word for word in words if word in _NEGATORS or word.endswith(("n't", "n\u2019t"))]
    contracted = [word for word in words if word.startswith(("n'", "n\u2019"))]
    return [*plain, *contracted, *_UNSPACED.findall(text)]


def _count_others(text: str) -> int:
    return len(_OTHERS.findall(text.casefold()))
