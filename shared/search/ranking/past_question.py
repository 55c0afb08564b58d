"""Tell whether a question is about the past: by a date, or by words such as "before" and "originally".

Such a question may ask for what was true then. Words of several languages are known. A word that means
something else in another language ("hier", "prima") costs no more than that the question counts as one
about the past. The tense alone tells nothing: "What was the name of the hotel?" asks for what is true now.
"""

import re

from shared.search.ranking.date_ranges import find_date_ranges
from shared.search.text.tokenizer import MAX_QUERY_CHARS

_WORDS = """
    before previous previously prior former formerly original originally initial initially earlier earliest
    ago yesterday history
    früher frühere früheren früherer vorher vorherige vorherigen zuvor damals ursprünglich ursprüngliche
    ursprünglichen anfangs ehemalig ehemalige ehemaligen ehemaliger einst bisherige bisherigen gestern
    letzte letzten letzter letztes vorige vorigen voriger voriges alte alten alter altes
    antes anterior anteriores anteriormente previamente originalmente inicialmente ayer entonces
    pasado pasada pasados pasadas antiguo antigua solía solían
    avant auparavant autrefois précédemment précédent précédente ancien ancienne anciens initialement hier
    dernier dernière derniers dernières
    prima precedente precedentemente inizialmente originariamente ieri scorso scorsa vecchio vecchia
    ontem antigo antiga passado passada
    vroeger eerder voorheen oorspronkelijk oorspronkelijke toen vorig vorige gisteren geleden
    wcześniej przedtem dawniej poprzedni poprzednia poprzednie początkowo wczoraj temu
    раньше прежде прежний прежняя прежнее изначально сначала вчера назад тогда прошлый прошлом прошлой
    прошлого старый старая старое старого
    раніше колись спочатку вчора минулий минулого колишній колишня
    dříve předtím původně včera minulý minulá minulé minulém bývalý bývalá
    tidigare förut förr ursprungligen igår förra
    tidligere før opprinnelig oprindeligt forrige
    aiemmin aikaisemmin ennen eilen viime entinen
    korábban azelőtt régen eredetileg tegnap múlt
    înainte anterior anterioară inițial ieri trecut trecută fostul fosta
    πριν προηγουμένως αρχικά χθες παλιά πέρυσι προηγούμενη προηγούμενο
    eskiden önce önceki önceden dün geçen
    dulu sebelumnya dahulu kemarin awalnya lalu
"""
_PAST_WORDS = frozenset(_WORDS.split())
_MONTHS = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
_WORD = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")
_PHRASE = re.compile(
    r"""\b(?:
    used?\ to | once(?!\ (?:an?|per|every|in)\b) | back\ then | at\ (?:that|the)\ time | at\ first
    | first\ \w+ed | (?:at|in)\ the\ (?:beginning|start|past) | (?<!how\ )(?<!years\ )(?<!year\ )old
    | until(?!\ when) | over\ time | (?:has|have|had|did)\b[^.?!]*\b(?:chang|evolv)(?:ed?|ing)
    | (?:last|past)\ (?:night|week(?:end)?|month|year|decade|spring|summer|autumn|fall|winter|time
        |(?:mon|tues|wednes|thurs|fri|satur|sun)day)
    | when\ \w+\ (?:was|were) | during\ the | as\ a\ (?:child|kid|student)
    | vor\ \w+\ (?:tag|woche|monat|jahr)\w* | al\ principio | hace\ \w+\ (?:día|semana|mes|año)\w*
    | à\ l['\u2019]origine | au\ début | il\ y\ a\ \w+\ (?:jour|semaine|mois|an)\w*
    | all['\u2019]inizio | un\ tempo
    | (?:giorn[oi]|settiman[ae]|mes[ei]|ann[oi])\ fa | no\ início
    | (?:19|20)\d\d | \d{1,2}[/.]\d{1,2}[/.]\d{2,4}
    )\b""",
    re.VERBOSE,
)
# Of scripts without spaces between words, and of languages that write other words together with them.
_WITHIN_WORDS = re.compile(
    "以前|之前|原来|原先|原本|最初|昨天|昨日|去年|上个?月|上周|曾经|当时|当時|元々|もともと|かつて|先月|先週|前[にはの]"
    "|이전|예전|전에|원래|처음에|어제|지난|작년|سابق|قبل|أمس|الماضي|पहले|पूर्व|पिछल|לפני|קודם|בעבר|אתמול|שעבר"
    "|trước đây|trước kia|hôm qua|năm ngoái|เมื่อก่อน|ก่อนหน้า|เมื่อวาน|ปีที่แล้ว"
)


def is_about_past(query: str) -> bool:
    """Return whether a question names a date or has a word of the past.

    "today" and "this week" are no dates in this sense.
    """
    query = query[:MAX_QUERY_CHARS].casefold()
    words = _WORD.findall(query)
    if not _PAST_WORDS.isdisjoint(words) or _PHRASE.search(query) or _WITHIN_WORDS.search(query):
        return True
    # Most questions have neither a digit nor a month, and to look for dates takes time.
    may_have_date = any(word[:3] in _MONTHS for word in words) or bool(_DIGIT.search(query))
    return may_have_date and bool(find_date_ranges(query))
