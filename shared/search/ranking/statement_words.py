"""The words by which statements are compared, in several languages. Lists, without rules.

A word that is missing costs a pair that is not recognised; no pair is recognised by an unknown word.
"""

from shared.search.text.stemmer import stem

_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = """
    january february march april may june july august september october november december
    januar februar märz mai juni juli oktober dezember
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    janvier février mars avril juin juillet août septembre octobre novembre décembre
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _stems(text: str) -> frozenset[str]:
    """Return words in the form in which statements are compared."""
    return frozenset(stem(word) if word.isascii() else word for word in text.split())


ARTICLES = _words("a an the der die das den dem ein eine einen el la los las un una le les il het een")
CHANGE_MARKS = _words("""
    now currently new newly updated latest recently instead just already actually jetzt nun inzwischen
    mittlerweile neu neue neuer neues neuen ahora maintenant désormais ora adesso agora nu teraz теперь сейчас
""")
"""Words that say that something is so since lately. They are no part of what is said."""
NEGATIONS = _words("""
    no not never cannot nicht kein keine keinen keiner nie niemals ne n non nunca não niet geen не нет nigdy
""")
BESIDE_NEGATIONS = _words("longer any anymore more mehr ya più mais meer plus pas jamais больше")
"""Words that mean nothing of their own beside a negation: "no longer", "ne … plus"."""
AUXILIARIES = _words("do does did ca wo")
"""With "can't" and "won't", whose "n't" is read as "not"."""

UPDATES = _stems("""
    raise increase extend reschedule move change shorten reduce update switch reach drop lower postpone delay
    rise become bump upgrade replace expand push revise
""")
"""Verbs that give something another value than it had."""
PASTS = _words("""
    ran bought ate saw went met came got made took gave found sold won lost wrote spent drank drove flew slept
    sent paid taught caught built brought told heard
""")
"""Irregular forms that tell what happened."""
NO_EVENTS = _words("""
    planned scheduled located based called named married set expected supposed required needed allowed used
    estimated closed need speed feed seed red bed shed hundred
""")
"""Words in -ed that do not tell what happened."""
NEW = _words("new newly now")
MONTHS = _words(_MONTHS)
VALUES = _stems(f"""
    {_DAYS} {" ".join(day + "s" for day in _DAYS.split())} {_MONTHS}
    zero one two three four five six seven eight nine ten eleven twelve noon midnight morning afternoon
    evening night am pm today tomorrow daily weekly monthly second minute hour day week month year percent
    euro dollar montag dienstag mittwoch donnerstag freitag samstag sonntag
    lunes martes miércoles jueves viernes sábado domingo
    lundi mardi mercredi jeudi vendredi samedi dimanche
    $ € £ ¥ % 上 下 午 一 二 三 四 五 六 日
""")
"""Words that are a value, or a part of one, as a number is."""
CALENDAR = _stems(f"{_DAYS} {' '.join(day + 's' for day in _DAYS.split())} {_MONTHS} am pm noon midnight")
CONNECTIONS = _stems("at on of and in um à alle de del le la las to am pm uhr")
"""Words between the parts of one value: "Friday at 3"."""

CALLED = _stems("called named heißt llama appelle chiama")
COPULAS = _stems("is are be am ist sind es est è é")
PLACES = _stems("in at near as on à a en bei an auf until within every um te em в на")
"""Prepositions before what a thing can have only one of: a place, a time, a job."""
STATES = _stems("""
    live lives work be run
    stand sit place rehearse base go study happen hold meet start begin end leave open close
    answer train seat use locate reside stay want prefer
    wohnt wohne arbeitet steht lebt vivo vive trabaja habite travaille
    lavora mora woont werkt mieszka живёт живет работает стоит
""")
"""Verbs of how things stand, not of what happened once."""
ONE_AT_A_TIME = _stems("drive vive vivo habite lavora mora")
"""Verbs with one object, as a rule. Behind some of them "a" is a preposition, not an article."""
ONE_FOR_A_PURPOSE = _stems("use prefer want wear run")
"""Verbs whose object is one thing if something else follows: "use Jenkins for builds"."""
ATTRIBUTES = _stems("""
    my our your his her their s of user favourite favorite main default mein meine meiner mi mon ma mes il mio
    mia meu minha favorito favorita preferito preferita préféré préférée lieblingsfarbe
    password code number name address status price budget goal deadline date time rate size limit version
    colour color location owner lead leader manager boss doctor title role job salary rent weight height age
    email
""")
"""Words of which one is in "my doctor", "the owner of", "the password": a subject with one value."""
SEVERAL = _stems("""
    friend sister brother son daughter child kid hobby interest skill cousin pet cat dog
    freund schwester bruder sohn tochter
""")
"""What someone can have several of, so that another one does not replace the first."""
LABELLED = _stems("""
    line room sprint invoice chapter version team phase step ticket order case unit lesson section page
    apartment flat floor gate platform bus train flight track level grade class group question task item
    number nr id user port error node shard account zone table row column player exam quiz batch model
    rechnung zimmer raum kapitel linie salle chambre chapitre sala capítulo 室
""")
"""Words before a number that is a name: "room 12"."""
BESIDE_SUBJECTS = COPULAS | _stems("have cost stop")
"""Words before which a number belongs to the subject."""
_OPPOSITES = """
    on off; open closed close; active inactive; true false; enabled disabled; available unavailable; up down;
    married divorced single engaged widowed; pending done; public private; online offline; an aus
"""
OPPOSITES = tuple(_stems(group) for group in _OPPOSITES.split(";"))
"""Of each group, one alone can be true."""

PERCENT, MONEY, TIME_OF_DAY, SPAN, DATE = "percent", "money", "time_of_day", "span", "date"
KIND_OF_UNIT = (
    dict.fromkeys(_stems("% percent prozent"), PERCENT)
    | dict.fromkeys(_stems("$ € £ ¥ euro dollar pound"), MONEY)
    | dict.fromkeys(_stems("am pm uhr"), TIME_OF_DAY)
    | dict.fromkeys(_stems("second minute hour day week month year"), SPAN)
)
CURRENCIES = _words("$ € £ ¥")
