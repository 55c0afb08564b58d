"""Where the user lives: a fact that is mined, and later changed."""

from typing import Any

from tests.agent import Json
from tests.integration.mining.conftest import JUNE, MARCH, Talker, fact, propose
from tests.standins.models import ModelServer

AARHUS, ODENSE = "The user lives in Aarhus.", "The user moved from Aarhus to Odense."


async def tell_of_aarhus(talker: Talker, models: ModelServer) -> tuple[str, Json]:
    """Have it said and mined that ada lives in Aarhus; return the session and the memory."""
    session = await talker.talk("I live in Aarhus.", "Noted.", at=MARCH)
    models.chat_default = propose(fact(AARHUS, (session, 1), category="home", importance=0.7))
    await talker.mine(session)
    return session, (await talker.facts())[AARHUS]


async def move_to_odense(talker: Talker, models: ModelServer, of: str, **fields: Any) -> tuple[str, Json]:
    """Have it said and mined that she moved; return the session and the run."""
    session = await talker.talk("We moved from Aarhus to Odense.", "Oh!", at=JUNE)
    models.chat_default = propose(fact(ODENSE, (session, 1), relation="changed", of=of, **fields))
    return session, await talker.mine(session)
