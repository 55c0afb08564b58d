"""Tell whom a text speaks of: its writer, its writer's own people and things, or somebody named before.

Pronouns of eight languages. In Spanish, Italian and Portuguese the ending of the verb stands for "I", in
Japanese nothing does: there a clause without another subject is about its writer.
"""

import re

from shared.language import common_words

_USER_WORDS = """
user nutzer nutzerin benutzer benutzerin anwender utilisateur utilisatrice usuario usuaria usuário usuária
utilizador utilizadora utente gebruiker gebruikster
"""
_ANY_USER = "|".join(_USER_WORDS.split())
_USER = re.compile(rf"\b(?:{_ANY_USER})\b(?!['\u2019]s\b)|ユーザー(?!の)|用户(?!的)|用戶(?!的)")
_USER_NEAR_START = 4
_OWNED_BY_USER = re.compile(
    rf"\b(?:de la|de l['\u2019]|de|du|del|della|dell['\u2019]|do|da|der|van de)\s?(?:{_ANY_USER})\b"
)
_FIRST = frozenset(
    """
    i we me us myself ich wir mir mich uns je j on nous moi yo nosotros nosotras io noi mi ci eu nós me nos
    m ik wij
    """.split()  # noqa: SIM905
)
_FIRST_SUBJECT = frozenset("i we ich wir je j on nous yo nosotros io noi eu nós ik wij".split())  # noqa: SIM905
_FIRST_UNSPACED = re.compile("私|僕|俺|我(?!的)|我们|我們")
_OWN = frozenset(
    """
    my our mine mein meine meinen meinem meiner meines unser unsere unseren unserem unserer mon ma mes notre
    nos mi mis nuestro nuestra nuestros nuestras mio mia miei mie nostro nostra meu minha meus minhas nosso
    nossa mijn onze
    """.split()  # noqa: SIM905
)
_SECOND = frozenset(
    """
    you your yours sie ihnen ihr ihre ihren ihrem du dir dich dein deine vous votre vos tu te usted ustedes su
    sus tú tus tuo tua lei suo você vocês seu sua vostro u uw jij jouw
    """.split()  # noqa: SIM905
)
_THIRD = frozenset(
    """
    he she they him her them his hers their er sie ihm ihn ihr ihnen sein seine il elle ils elles lui leur
    él ella ellos ellas le les lei loro gli ele ela eles elas hij zij hem haar hun
    """.split()  # noqa: SIM905
)
_THIRD_UNSPACED = re.compile("彼|他|她|它")
_TOPIC = re.compile("[はが]")
_KANA = re.compile("[\u3040-\u30ff]")
_CONNECTIVES = frozenset("y e mas pero ma entonces então também también anche allora ya já".split())  # noqa: SIM905
_FIRST_VERB = re.compile(
    r"(?:\w{3,}o|ho|so|sou|soy|vou|voy|estou|estoy|doy|dou|sei|hei|tenho|\w{3,}(?:ei|é|í|i))"
)
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\u2026\u201e\u201c\"(\u2013\u2014])\s*$")
_DETERMINER = re.compile(
    r"(?:d(?:er|ie|as|en|em|es|iese\w?)|(?:k|m|d|s)?ein\w{0,2}|ihr\w{0,2}|unser\w{0,2}|euer|eure\w?|zum|zur|i[mn]s?|am|ans|vom|beim"
    r"|viele\w?|einige\w?|alle\w?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|pro|jede\w?|\w+(?:ige|ische|liche|bare)\w?)"
)
_GERMAN = re.compile(r"\b(?:der|die|das|und|ich|ist|nicht|ein|eine|wir|hat|für)\b")
_NO_NAMES = frozenset({"dr", "mr", "mrs", "ms", "m", "mme", "sr", "sra", "i", "frau", "herr"})


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without digits and punctuation."""
    return _WORD.findall(text.casefold())


def is_about_user(statement: str) -> bool:
    """Tell whether the subject of a statement is the user, and not only somebody or something of the user."""
    lower = _OWNED_BY_USER.sub(" ", statement.casefold())
    match = _USER.search(lower)
    return match is not None and len(words_of(lower[: match.start()])) < _USER_NEAR_START


def names_user(statement: str) -> bool:
    """Tell whether a statement names the user in any role."""
    return re.search(rf"{_ANY_USER}|ユーザー|用户|用戶", statement.casefold()) is not None


def is_about_writer(clause: str) -> bool:
    """Tell whether its writer is the subject of a clause, or what it is said of."""
    words = words_of(clause)
    if not _FIRST.isdisjoint(words) or _FIRST_UNSPACED.search(clause):
        return True
    if _KANA.search(clause):
        return not _TOPIC.search(clause)
    first = next((word for word in words if word not in _CONNECTIVES), "")
    return _FIRST_VERB.fullmatch(first) is not None


def has_writer_as_subject(clause: str) -> bool:
    """Tell whether a clause has a pronoun for its writer as a subject."""
    return not _FIRST_SUBJECT.isdisjoint(words_of(clause)) or _FIRST_UNSPACED.search(clause) is not None


def is_about_own(clause: str) -> bool:
    """Tell whether a clause speaks of somebody or something of its writer: "my wife"."""
    return not _OWN.isdisjoint(words_of(clause)) or "我的" in clause


def is_about_reader(question: str) -> bool:
    """Tell whether a question asks its reader about the reader."""
    return (
        not _SECOND.isdisjoint(words_of(question))
        or re.search("[你您]|あなた|ますか|ですか", question) is not None
    )


def is_about_third(clause: str) -> bool:
    """Tell whether a clause has a pronoun for somebody else."""
    return not _THIRD.isdisjoint(words_of(clause)) or _THIRD_UNSPACED.search(clause) is not None


def names_in(text: str) -> frozenset[str]:
    """Return the words within the sentences of a text that a capital marks as names, in lower case.

    In German, where nouns have capitals, what stands behind an article, a number or the like is no name.
    """
    is_german = _GERMAN.search(text) is not None
    names = set[str]()
    for match in _WORD.finditer(text):
        before = text[max(0, match.start() - 40) : match.start()]
        word = match[0].casefold()
        if not match[0][0].isupper() or word in _NO_NAMES or _SENTENCE_START.search(before):
            continue
        words_before = _WORD.findall(before)
        if is_german and words_before and _DETERMINER.fullmatch(words_before[-1]):
            continue
        names.add(word)
    return frozenset(names)


def first_name(statement: str) -> frozenset[str]:
    """Return the first word of a statement, in lower case, unless it is known to be no name."""
    words = words_of(statement)[:1]
    return frozenset(word for word in words if not common_words.is_common_opener(word))
