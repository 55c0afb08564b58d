"""Words at the start of a note's sentences that are no names: greetings, interjections, adverbs, verbs.

A note is spoken, so it has more of them than a memory, whose common first words are in
`shared.language.common_words`. A word that may be a name ("Grace", "Joy", "Frank") is left out.
"""

from shared.language import common_words

_WORDS = """
hello hi hey dear thanks thank thx cheers welcome bye goodbye sorry great nice cool sure wow well so btw
fyi
oh ah hm hmm um uh ugh yeah yep nope okay alright right true fine perfect awesome anyway anyways besides
instead
otherwise meanwhile therefore thus hence moreover furthermore nevertheless maybe perhaps again however
though
still yet even guess think thought heard saw met went came got gave took told said made found left lost
bought
sold paid ate drank drove flew spoke wrote sent began became booked decided agreed cancelled canceled
finished
started moved signed planned tried done going getting trying having being doing working living looking
thinking
quick reminder heads note todo ps tldr fun people someone somebody everyone everybody anyone something
everything
anything half part most kind sort lots plenty cats dogs kids plants birds spicy cold hot warm big old
young little
good best worst cheap free busy tired happy sad red blue green black white
hallo moin servus guten danke tschüss übrigens also ach naja genau klar gut schade leider vielleicht
eigentlich
außerdem trotzdem deshalb deswegen danach davor dann dort diese dieser dieses diesen alle beide manche man
wir
hab habe gibt geht
bonjour salut bonsoir merci voilà alors donc ensuite peut habite travaille préfère aime bois mange utilise
ai suis
hola buenos buenas gracias vivo trabajo tengo quiero prefiero uso como bebo hablo necesito soy estoy voy
me gusta
ciao grazie allora poi abito lavoro ho preferisco bevo mangio parlo sono vado
olá obrigado obrigada então depois moro trabalho tenho prefiro gosto bebo falo sou estou vou
hoi dank bedankt woon werk heb ben drink eet
привет здравствуйте спасибо живу работаю люблю
"""
_OPENERS = frozenset(_WORDS.split())
_ENDINGS = ("ly", "ing")
_MIN_LENGTH = 6
"""Letters from which an ending shows an adverb or a gerund: "Emily" and "Sally" are names, "King" is one."""
_NAMES = frozenset(
    {"beverly", "kimberly", "browning", "fleming", "harding", "sterling", "manning", "golding"}
)


def is_opener(word: str) -> bool:
    """Tell whether a word, in lower case, is no name although it begins a sentence with a capital."""
    if word in _OPENERS or common_words.is_common_opener(word):
        return True
    return len(word) > _MIN_LENGTH and word.endswith(_ENDINGS) and word not in _NAMES
