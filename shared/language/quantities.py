"""Normalise the numbers, days and times of a text: "1,000" is 1000, "5 percent" is 5 %, "2pm" is 14:00.

Values stay texts, because 3.10 may be a version and is then not 3.1. A word after a number that is no known
unit is an ordinary word. Days that are written with slashes are not parsed, because nobody knows which
number is the month: they are compared as they are written.
"""

import re
import unicodedata
from collections.abc import Callable
from datetime import date

_NAMES = """
%:percent pct prozent procent; $:usd dollar dollars; €:eur euro euros; £:gbp pound pounds quid;
¥:jpy yen; ₹:inr rupee rupees; chf:francs franken; k:thousand tausend; million:mio mn millions millionen;
billion:bn billions milliarden; ms:millisecond milliseconds; s:sec secs second seconds sekunde sekunden;
min:mins minute minutes minuten; h:hr hrs hour hours stunde stunden heure heures hora horas;
day:d days tag tage tagen jour jours dia dias; week:weeks woche wochen semaine semaines semana semanas;
month:months monat monate monaten mois mes meses; year:y yr yrs years jahr jahre jahren an ans;
km:kilometer kilometers kilometre kilometres; metre:metres meter meters; m:; cm:; mm:; mi:mile miles;
ft:foot feet; g:gram grams gramm; mg:milligram milligrams milligramm; μg:mcg ug microgram micrograms;
kg:kilo kilos kilogram kilograms; lb:lbs; oz:ounce ounces; l:liter liters litre litres; cl:; dl:;
ml:milliliter milliliters millilitre millilitres; °c:celsius; °f:fahrenheit; kb:; mb:; gb:; tb:; kib:; mib:;
gib:; tib:; hz:; khz:; mhz:; ghz:; wh:; kwh:; kw:; w:watt watts; mw:; px:pixel pixels; fps:; rpm:; kcal:;
mah:; mph:; mmol:; psi:
"""
_UNITS = {
    form: unit
    for unit, _, forms in (line.strip().partition(":") for line in _NAMES.split(";"))
    for form in (unit, *forms.split())
}
_AFTER = re.compile(r"\s?(%|°\s?[CF]|[$€£¥₹]|[^\W\d_]{1,12})(?!\w)", re.IGNORECASE)
_BEFORE = re.compile(r"(?:([$€£¥₹])|(?<!\w)(USD|EUR|GBP|CHF|JPY|INR))\s?$")
_GROUPED = re.compile(r"\d{1,3}(?:[,\u2019']\d{3})+(?:\.\d+)?")
_GROUPED_BY_DOTS = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+")
_COMMA = re.compile(r"\d+,\d+")

_MONTHS = """
jan january januar janvier enero; feb february februar février febrero; mar march märz mars marzo;
apr april avril abril; may mai mayo; jun june juni juin junio; jul july juli juillet julio;
aug august août agosto; sep sept september septembre septiembre; oct october oktober octobre octubre okt;
nov november novembre noviembre; dec december dezember décembre diciembre dez
"""
_MONTH = {name: n for n, line in enumerate(_MONTHS.split(";"), 1) for name in line.split()}
_ANY_MONTH = "|".join(sorted(_MONTH, key=len, reverse=True))
_ORDINAL = r"(?:st|nd|rd|th|\.)?"
_DAYS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], tuple[str, ...]]], ...] = (
    (re.compile(r"(?<![\w-])(\d{4})-(\d\d)-(\d\d)(?![\d-])"), lambda m: (m[1], m[2], m[3])),
    (re.compile(r"(?<!\w)(\d{4})年\s?(\d{1,2})月\s?(\d{1,2})日"), lambda m: (m[1], m[2], m[3])),
    (re.compile(r"(?<![\w.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\w)"), lambda m: (m[3], m[2], m[1])),
    (
        re.compile(
            rf"(?<!\w)(\d{{1,2}}){_ORDINAL} (?:of |de )?({_ANY_MONTH})\.?,? (\d{{4}})(?!\w)", re.IGNORECASE
        ),
        lambda m: (m[3], str(_MONTH[m[2].lower()]), m[1]),
    ),
    (
        re.compile(rf"(?<!\w)({_ANY_MONTH})\.? (\d{{1,2}}){_ORDINAL},? (\d{{4}})(?!\w)", re.IGNORECASE),
        lambda m: (m[3], str(_MONTH[m[1].lower()]), m[2]),
    ),
)
_TIME = re.compile(
    r"(?<![\w:.])T?(?:([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d(?:\.\d+)?)?(?:\s?([ap])\.?m\b)?"
    r"|(1[0-2]|0?[1-9])\s?([ap])\.?m\b)Z?(?![\w:])",
    re.IGNORECASE,
)

_SPELLINGS = """
2 two twice zwei deux; 3 three thrice drei trois tres; 4 four vier quatre cuatro; 5 five fünf cinq cinco;
6 six sechs seis; 7 seven sieben sept siete; 8 eight acht huit ocho; 9 nine neun neuf nueve; 10 ten zehn diez;
11 eleven onze; 12 twelve dozen zwölf doce; 13 thirteen; 14 fourteen; 15 fifteen; 16 sixteen; 17 seventeen;
18 eighteen; 19 nineteen; 20 twenty zwanzig vingt veinte; 30 thirty dreißig trente treinta; 40 forty vierzig;
50 fifty fünfzig; 60 sixty sechzig; 70 seventy siebzig; 80 eighty achtzig; 90 ninety neunzig;
100 hundred hundert
"""
_SPELLED = {word: line.split()[0] for line in _SPELLINGS.split(";") for word in line.casefold().split()[1:]}


def days(text: str) -> tuple[dict[str, str], str]:
    """Return the days of a text, as wording by ISO date, and the text without them."""
    wordings: dict[str, str] = {}

    def take(match: re.Match[str], parts: tuple[str, ...]) -> str:
        try:
            day = date(*map(int, parts))
        except ValueError:
            return match[0]
        wordings[day.isoformat()] = match[0]
        return " \ufffc "

    for pattern, parts_of in _DAYS:
        text = pattern.sub(lambda m, parts_of=parts_of: take(m, parts_of(m)), text)  # type: ignore[misc]
    return wordings, text


def times(text: str) -> tuple[dict[str, str], str]:
    """Return the times of day of a text, as wording by HH:MM, and the text without them."""
    wordings = {_to_24_hours(match): match[0].strip() for match in _TIME.finditer(text)}
    return wordings, _TIME.sub(" \ufffc ", text)


def _to_24_hours(match: re.Match[str]) -> str:
    hour, minute, half = int(match[1] or match[4]), match[2] or "00", (match[3] or match[5] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}:{minute}"


def value(digits: str) -> str:
    """Return the compared form of a number: ASCII digits, a decimal point, no grouping."""
    plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in digits)
    if _GROUPED.fullmatch(plain):
        return re.sub("[,\u2019']", "", plain)
    if _GROUPED_BY_DOTS.fullmatch(plain):
        return plain.replace(".", "").replace(",", ".")
    return plain.replace(",", ".") if _COMMA.fullmatch(plain) else plain


def unit(text: str, start: int, end: int) -> str:
    """Return the unit of the number at `start`..`end`: the one after it, or a currency before it."""
    if before := _BEFORE.search(text[max(0, start - 5) : start]):
        return named_unit(before[1] or before[2])
    after = _AFTER.match(text, end)
    return named_unit(after[1]) if after else ""


def named_unit(name: str) -> str:
    """Return the canonical name of a unit, or an empty string if the name is no unit."""
    return _UNITS.get(name.replace(" ", "").casefold(), "")


def spelled(word: str) -> str | None:
    """Return the value of a number that is written as a lower-case word, or None."""
    return _SPELLED.get(word)


def is_measure(word: str) -> bool:
    """Tell whether a case-folded word is a unit or a month, and so belongs to the number beside it."""
    return bool(named_unit(word)) or word in _MONTH
