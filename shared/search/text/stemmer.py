"""Reduce English word forms to a common one: the inflections of Porter (1980) and the irregular forms.

Only plurals, -ed and -ing are removed. Derivations are not: "university" and "universe" stay different.
Measurements on chats showed that a question and its answer differ in forms such as buy and bought.
Words of other languages lose at most a final s or e, in documents and queries alike.
"""

from functools import lru_cache

_MIN_LENGTH = 4
_FORMS = """
be:is are was were been am being; have:has had having; do:does did done; go:goes went gone; say:said;
get:got gotten; make:made; know:knew known; think:thought; take:took taken; see:saw seen; come:came;
give:gave given; find:found; tell:told; feel:felt; become:became; leave:left; mean:meant; keep:kept;
begin:began begun; show:shown; hear:heard; hold:held; bring:brought; write:wrote written; sit:sat;
stand:stood; lose:lost; pay:paid; meet:met; understand:understood; lead:led; speak:spoke spoken;
grow:grew grown; win:won; buy:bought; send:sent; build:built; fall:fell fallen; sell:sold;
choose:chose chosen; drive:drove driven; break:broke broken; spend:spent; teach:taught; catch:caught;
draw:drew drawn; eat:ate eaten; fly:flew flown; forget:forgot forgotten; forgive:forgave forgiven;
freeze:froze frozen; hide:hid hidden; ride:rode ridden; ring:rang rung; rise:rose risen; run:ran;
seek:sought; shake:shook shaken; shine:shone; shoot:shot; sing:sang sung; sink:sank sunk; sleep:slept;
steal:stole stolen; strike:struck; swim:swam swum; swear:swore sworn; throw:threw thrown;
wake:woke woken; wear:wore worn; fight:fought; bite:bit bitten; blow:blew blown; bend:bent; dig:dug;
drink:drank drunk; feed:fed; flee:fled; hang:hung; lend:lent; light:lit; sweep:swept; tear:tore torn;
weep:wept; wind:wound; deal:dealt; dream:dreamt; learn:learnt; burn:burnt; spell:spelt; bind:bound;
sew:sewn; stick:stuck; weave:wove woven; overcome:overcame; undergo:underwent undergone;
child:children; man:men; woman:women; person:people; foot:feet; tooth:teeth; mouse:mice; goose:geese;
life:lives; wife:wives; knife:knives; leaf:leaves; shelf:shelves; wolf:wolves; half:halves; self:selves;
loaf:loaves; datum:data; criterion:criteria; analysis:analyses; index:indices indexes; hero:heroes;
potato:potatoes; tomato:tomatoes; bus:buses; news:news; series:series; species:species; lens:lenses
"""
_IRREGULAR = {
    form: base
    for base, _, forms in (group.strip().partition(":") for group in _FORMS.split(";"))
    for form in forms.split()
}
_UNCHANGED = frozenset(
    {"news", "series", "species", "during", "something", "anything", "nothing", "everything"}
)


@lru_cache(100_000)
def stem(word: str) -> str:
    """Return the common form of a case-folded word: "bought" and "buying" both give "buy"."""
    word = _IRREGULAR.get(word, word)
    if len(word) < _MIN_LENGTH or word in _UNCHANGED or not word.isalpha():
        return word
    return _without_final_e(_without_tense(_singular(word)))


def _singular(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > len("ties") else word[:-1]
    if word.endswith(("sses", "ches", "shes", "xes", "zzes")):
        return word[:-2]
    return word[:-1]


def _without_tense(word: str) -> str:
    if word.endswith("ied"):
        return word[:-3] + "y" if len(word) > len("tied") else word[:-1]
    if word.endswith("eed"):
        return word
    for ending in ("ing", "ed"):
        if word.endswith(ending):
            root = word[: -len(ending)]
            return _restore_root(root) if _shape(root).count("v") and len(root) > 1 else word
    return word


def _restore_root(root: str) -> str:
    """Undo what the ending did to the root: hik(ing) becomes hike, stopp(ed) becomes stop."""
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if root[-1] == root[-2] and root[-1] not in "aeiouylsz":
        return root[:-1]
    return root + "e" if _measure(root) == 1 and _ends_short(root) else root


def _without_final_e(word: str) -> str:
    if not word.endswith("e"):
        return word
    root = word[:-1]
    measure = _measure(root)
    return root if measure > 1 or (measure == 1 and not _ends_short(root)) else word


def _measure(word: str) -> int:
    """Count the vowel-consonant sequences (the m of Porter)."""
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    """Tell whether a word ends with consonant, vowel, consonant other than w, x, y (the *o of Porter)."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _shape(word: str) -> str:
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if is_vowel else "c"
    return shape
