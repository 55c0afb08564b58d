"""Find what a rewriting lost of the words that no capital marks as names.

In a script without capitals a name looks like any other word. So each word of a note comes back there, but
for those of the grammar: a rewriting that says it in other words is refused, and the note stays as it was
written. Words are compared by their beginning, because many of these languages inflect the end.

- Han: each character that is not of the grammar. A name that differs in one character is another name.
- Thai, Lao, Khmer, Burmese: a stretch of four characters of which no neighbouring two come back is lost.
- Hangul: the first two syllables of each word. Arabic, Hebrew, Indic scripts and the like: the first four
  characters, without an article.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_GRAMMAR = frozenset(
    "我你您他她它们們的了是在和跟与與及也都很就还還又要会會能可以想得地着過过个個位这這那哪么麼什吗嗎呢吧啊"
    "把被给給让讓向往对對从從到为為因所而且但或如果虽雖然只有没沒不無无未别別勿去来來说說做用请請喜欢歡爱愛"
    "每最更已经經正将將先后後再此其之于於并並者等该該叫名字人用户戶時时候日月年号號本当當今中上下間间内內事"
)
_PAIRED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{4,}")
_STRETCH = 4
_HANGUL = re.compile("(?<![0-9\uac00-\ud7af])[\uac00-\ud7af]{2,}")
_SYLLABLES = 2
_SPACED = re.compile("[\u0590-\u08ff\u0900-\u0dff\u10a0-\u137f\u200c\u200d]{2,}")
_PREFIX_LENGTH = 4
_ARTICLE = re.compile("^(?:\u0648?\u0627\u0644|\u05d5?\u05d4)(?=.{3})")
_STOP_WORDS = frozenset(
    """
    저는 나는 우리 그는 그녀 그리고 하지만 에서 있다 있는 한다 하는 된다 입니다 합니다 그의 매우 사용자
    هو هي هم هذا هذه ذلك التي الذي في من على إلى عن مع كان كانت قد ثم أو أن إن ما كل بعد قبل عند
    ولا لا لم لن ليس أنا نحن
    הוא היא הם אני אנחנו של את על עם זה זו גם כל או אבל כי אם לא אין היה היתה
    है हैं था थी थे में से का की के को और पर यह वह वे हम मैं मेरा मेरी मेरे उसका उसकी उसके
    उनका उनकी उनके
    ने भी तो नहीं मत लिए साथ रहा रही रहे
    """.split()  # noqa: SIM905  (as a list it would fill a page)
)


def lost_words(note: str, rewriting: str) -> list[str]:
    """Return the words of the note, in scripts without capitals, that the rewriting lacks."""
    note, rewriting = (unicodedata.normalize("NFKC", text) for text in (note, rewriting))
    return [
        *(character for character in _HAN.findall(note) if character not in _GRAMMAR | set(rewriting)),
        *_lost_stretches(note, rewriting),
        *(word for word in _HANGUL.findall(note) if _is_lost(word, word[:_SYLLABLES], rewriting)),
        *(word for word in _SPACED.findall(note) if _is_lost(word, _beginning(word), rewriting)),
    ]


def _is_lost(word: str, beginning: str, rewriting: str) -> bool:
    return word not in _STOP_WORDS and beginning not in rewriting


def _beginning(word: str) -> str:
    return _ARTICLE.sub("", word)[:_PREFIX_LENGTH]


def _lost_stretches(note: str, rewriting: str) -> Iterator[str]:
    present_pairs = {first + second for first, second in pairwise(rewriting)}
    for run in _PAIRED.findall(note):
        stretches = (run[start : start + _STRETCH] for start in range(len(run) - _STRETCH + 1))
        for stretch in stretches:
            if present_pairs.isdisjoint(first + second for first, second in pairwise(stretch)):
                yield stretch
