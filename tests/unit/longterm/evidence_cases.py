"""Notes, what a rewriting made of them, and questions with whether only the note answers them."""

from typing import NamedTuple


class Case(NamedTuple):
    """A question about a rewritten note. `needs_note`: what it asks for stands in no statement."""

    note: str
    statement: str
    question: str
    needs_note: bool


CASES = [
    Case(
        "Bob's out sick, so Ada takes the Friday shift.", "Ada takes the Friday shift.", "Is Bob sick?", True
    ),
    Case(
        "Bob's out sick, so Ada takes the Friday shift.",
        "Ada takes the Friday shift.",
        "Who takes the Friday shift?",
        False,
    ),
    Case(
        "Bob's out sick, so Ada takes the Friday shift.",
        "Ada takes the Friday shift.",
        "Why does Ada work on Friday?",
        False,
    ),
    Case(
        "The ferry rattles at full speed, so bring earplugs.",
        "The ferry rattles at full speed.",
        "earplugs",
        True,
    ),
    Case(
        "The ferry rattles at full speed, so bring earplugs.",
        "The ferry rattles at full speed.",
        "What should I bring for the ferry?",
        True,
    ),
    Case(
        "The ferry rattles at full speed, so bring earplugs.",
        "The ferry rattles at full speed.",
        "Does the ferry rattle?",
        False,
    ),
    Case(
        "Dentist moved to Tuesday because Dr. Kim is at a conference in Oslo.",
        "The dentist appointment is on Tuesday.",
        "Where is Dr. Kim?",
        True,
    ),
    Case(
        "Dentist moved to Tuesday because Dr. Kim is at a conference in Oslo.",
        "The dentist appointment is on Tuesday.",
        "conference in Oslo",
        True,
    ),
    Case(
        "Dentist moved to Tuesday because Dr. Kim is at a conference in Oslo.",
        "The dentist appointment is on Tuesday.",
        "When is the dentist appointment?",
        False,
    ),
    Case(
        "We switched suppliers to Molina after the rye flour came with weevils.",
        "The flour supplier is Molina.",
        "weevils in the rye flour",
        True,
    ),
    Case(
        "We switched suppliers to Molina after the rye flour came with weevils.",
        "The flour supplier is Molina.",
        "Who is the flour supplier?",
        False,
    ),
    Case(
        "We switched suppliers to Molina after the rye flour came with weevils.",
        "The flour supplier is Molina.",
        "supplier",
        False,
    ),
    Case(
        "Mia loves the red scooter that grandpa bought in Lyon.",
        "Mia loves her red scooter.",
        "What did grandpa buy in Lyon?",
        True,
    ),
    Case(
        "Mia loves the red scooter that grandpa bought in Lyon.",
        "Mia loves her red scooter.",
        "Which scooter does Mia love?",
        False,
    ),
    Case(
        "Mia loves the red scooter that grandpa bought in Lyon.",
        "Mia loves her red scooter.",
        "grandpa",
        True,
    ),
    Case(
        "The printer jams on thick paper; Joe cleans the rollers with alcohol.",
        "The printer jams on thick paper.",
        "How does Joe clean the rollers?",
        True,
    ),
    Case(
        "The printer jams on thick paper; Joe cleans the rollers with alcohol.",
        "The printer jams on thick paper.",
        "thick paper printer jam",
        False,
    ),
    Case(
        "The printer jams on thick paper; Joe cleans the rollers with alcohol.",
        "The printer jams on thick paper.",
        "alcohol",
        True,
    ),
    Case(
        "Anna wants the window seat since her knee hurts on long flights.",
        "Anna prefers the window seat.",
        "Does Anna's knee hurt?",
        True,
    ),
    Case(
        "Anna wants the window seat since her knee hurts on long flights.",
        "Anna prefers the window seat.",
        "Which seat does Anna prefer?",
        False,
    ),
    Case(
        "Anna wants the window seat since her knee hurts on long flights.",
        "Anna prefers the window seat.",
        "long flights",
        True,
    ),
    Case(
        "The server died at 3 am, the fan was full of dust, Lee replaced it.",
        "Lee replaced the server's fan.",
        "dust in the fan",
        True,
    ),
    Case(
        "The server died at 3 am, the fan was full of dust, Lee replaced it.",
        "Lee replaced the server's fan.",
        "When did the server die?",
        True,
    ),
    Case(
        "The server died at 3 am, the fan was full of dust, Lee replaced it.",
        "Lee replaced the server's fan.",
        "Who replaced the fan?",
        False,
    ),
    Case("Paul is vegan now and gave away his cheese knife.", "Paul is vegan.", "cheese knife", True),
    Case("Paul is vegan now and gave away his cheese knife.", "Paul is vegan.", "Is Paul vegan?", False),
    Case("Paul is vegan now and gave away his cheese knife.", "Paul is vegan.", "What does Paul eat?", False),
    Case(
        "Der Zug nach Kiel fällt aus, wir nehmen den Bus um sieben.",
        "Sie nehmen den Bus um sieben Uhr.",
        "Zug nach Kiel",
        True,
    ),
    Case(
        "Der Zug nach Kiel fällt aus, wir nehmen den Bus um sieben.",
        "Sie nehmen den Bus um sieben Uhr.",
        "Bus um sieben",
        False,
    ),
    Case(
        "La reunión pasa al jueves porque Marta viaja a Lima.",
        "La reunión es el jueves.",
        "Marta viaja a Lima",
        True,
    ),
    Case(
        "La reunión pasa al jueves porque Marta viaja a Lima.",
        "La reunión es el jueves.",
        "reunión jueves",
        False,
    ),
    Case(
        "Client Orbit wants invoices as PDF, their new accountant Sven hates spreadsheets.",
        "Orbit wants invoices as PDF.",
        "Who is the accountant of Orbit?",
        True,
    ),
    Case(
        "Client Orbit wants invoices as PDF, their new accountant Sven hates spreadsheets.",
        "Orbit wants invoices as PDF.",
        "Orbit invoices PDF",
        False,
    ),
    Case(
        "Client Orbit wants invoices as PDF, their new accountant Sven hates spreadsheets.",
        "Orbit wants invoices as PDF.",
        "Sven",
        True,
    ),
    Case(
        "Client Orbit wants invoices as PDF, their new accountant Sven hates spreadsheets.",
        "Orbit wants invoices as PDF.",
        "spreadsheets",
        True,
    ),
    Case(
        "Team retro is at ten; cake for Nora's birthday is in the kitchen.",
        "The team retro is at ten.",
        "Nora's birthday cake",
        True,
    ),
    Case(
        "Team retro is at ten; cake for Nora's birthday is in the kitchen.",
        "The team retro is at ten.",
        "When is the retro?",
        False,
    ),
    Case(
        "Team retro is at ten; cake for Nora's birthday is in the kitchen.",
        "The team retro is at ten.",
        "kitchen",
        True,
    ),
    Case(
        "The bike needs a new chain, the old one snapped on the bridge.",
        "The bike needs a new chain.",
        "snapped on the bridge",
        True,
    ),
    Case(
        "The bike needs a new chain, the old one snapped on the bridge.",
        "The bike needs a new chain.",
        "new chain for the bike",
        False,
    ),
    Case(
        "The bike needs a new chain, the old one snapped on the bridge.",
        "The bike needs a new chain.",
        "What does the bike need?",
        False,
    ),
    Case(
        "Backup to tape fails on Mondays when the cleaner unplugs the drive.",
        "The tape backup fails on Mondays.",
        "cleaner unplugs the drive",
        True,
    ),
    Case(
        "Backup to tape fails on Mondays when the cleaner unplugs the drive.",
        "The tape backup fails on Mondays.",
        "tape backup Monday",
        False,
    ),
    Case(
        "Backup to tape fails on Mondays when the cleaner unplugs the drive.",
        "The tape backup fails on Mondays.",
        "Why does the backup fail?",
        False,
    ),
    Case("Iris speaks Finnish with her nephew Oskar on Sundays.", "Iris speaks Finnish.", "Oskar", True),
    Case(
        "Iris speaks Finnish with her nephew Oskar on Sundays.",
        "Iris speaks Finnish.",
        "nephew of Iris",
        True,
    ),
    Case(
        "Iris speaks Finnish with her nephew Oskar on Sundays.",
        "Iris speaks Finnish.",
        "Does Iris speak Finnish?",
        False,
    ),
]
