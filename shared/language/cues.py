"""Words by which a text states no plain fact: a condition, a wish, a plan, a report, a joke, something past.

A cheap hint, in eight languages. Whoever needs to know reads the sentence. "May" is left out: it is a month.
"""

import re
from enum import StrEnum


class Cue(StrEnum):
    """What a word hints at."""

    CONDITION = "condition"  # if, would, maybe
    PLAN = "plan"  # wants, plans, hopes
    REPORT = "report"  # somebody says or thinks so
    JOKE = "joke"
    PAST = "past"  # no longer so
    QUESTION = "question"


_WORDS = {
    Cue.CONDITION: r"""
        if unless would wouldn't could couldn't might maybe perhaps probably possibly supposedly imagine
        suppose wish as\sif
        i'd you'd he'd she'd we'd they'd
        wenn falls würde würden würdest hätte hätten wäre wären könnte könnten vielleicht wahrscheinlich
        möglicherweise
        si s'il s'ils \w{3,}rais \w{3,}rait peut-être probablement
        ojalá quizás quizá \w{3,}ría \w{3,}rían fuera tuviera acaso
        se magari forse probabilmente fossi avessi \w{3,}rei \w{3,}rebbe
        oxalá talvez fosse tivesse \w{3,}ria \w{3,}riam provavelmente caso
        als misschien zou
    """,
    Cue.PLAN: r"""
        want wants wanted plan plans planning planned hope hopes hoping intend thinking\sof thinking\sabout
        consider considering considered going\sto would\slike dream someday
        will(?=\s(?:ich|er|sie|wir)) möchte möchten plane plant überlege überlegt hoffe hofft vorhaben vorhabe
        veux voudrais veut envisage envisageons espère pense\sà compte(?=\s\w+er)
        quiero quisiera pienso espero querría gustaría
        vorrei voglio penso\sdi spero intenzione
        quero gostaria penso\sem espero pretendo tenciono
    """,
    Cue.REPORT: r"""
        says said say told thinks thought claims claimed heard hear apparently allegedly reckons suggests
        suggested recommends recommended believes according\sto
        sagt sagte meint meinte behauptet angeblich gehört glaubt empfiehlt schlägt laut
        dit disait dirait pense prétend paraît selon voulait conseille
        dice dicen dijo cree según parece aconseja opina
        detto crede secondo sembra pare consiglia
        diz dizem disse acha acredita parece aconselha
    """,
    Cue.JOKE: r"""
        ha haha+ hah lol joke joking kidding just\skidding as\sif can\syou\sbelieve yeah\sright sarcasm
        scherz witz spaß haha na\sklar von\swegen
        blague plaisante plaisanterie rigole mdr
        broma bromeo jaja+ chiste
        scherzo scherzando battuta ahah+
        brincadeira piada brincando kkk+ graça rsrs
    """,
    Cue.PAST: r"""
        used\sto back\swhen back\sthen formerly former ex ago once in\sthose\sdays
        as\sa\s(?:child|kid|boy|girl|student)
        früher damals ehemals ehemalige ehemaliger einst als\s(?:kind|student|studentin)
        autrefois jadis ancien ancienne avant à\sl'époque quand\sj'étais
        antes solía antiguamente exmarido entonces de\sniño de\sniña
        una\svolta prima un\stempo da\s(?:bambino|bambina|ragazzo|ragazza)
        antigamente dantes outrora costumava em\s(?:criança|pequeno|pequena)
    """,
}
_UNSPACED = {
    Cue.CONDITION: "たら|なら(?!ない)|れば|かもしれ|もし|でしょう|だろう"
    "|如果|要是|假如|也许|可能|大概|就好了",
    Cue.PLAN: "たい|つもり|予定|考えて|想(?!起)|打算|计划|計劃|准备|希望|ほしい",
    Cue.REPORT: "そうです|らしい|と言|って言|と聞|听说|聽說|据说|說|说(?!明)|觉得|認為|认为",
    Cue.JOKE: "なんて|冗談|笑|开玩笑|開玩笑|哈哈",
    Cue.PAST: "以前|昔|かつて|元(?:妻|夫|彼)|从前|從前|曾经|曾經|过去|過去|小时候|当年",
}
_PATTERNS = {
    cue: re.compile(rf"(?<![\w-])(?:{'|'.join(_WORDS[cue].split())})(?!\w)|{_UNSPACED[cue]}")
    for cue in _WORDS
}


def cues_of(text: str) -> frozenset[Cue]:
    """Return what the words of a text hint at."""
    plain = text.casefold().replace("\u2019", "'")
    cues = {cue for cue, pattern in _PATTERNS.items() if pattern.search(plain)}
    return frozenset(cues | ({Cue.QUESTION} if re.search("[?\uff1f]", plain) else set()))
