"""Work on due promotions in a process that ends by SIGKILL right before it records the model's judgement.

The only argument is the settings, pickled and in base64.
"""

import asyncio
import base64
import os
import pickle
import signal
import sys
from typing import Any, NoReturn

from shared.dreams.promotion import due
from shared.platform.resources import open_resources
from workers.enrichment import promote


async def main() -> None:
    """Claim what is due and ask the model."""
    settings = pickle.loads(base64.b64decode(sys.argv[1]))  # noqa: S301  (from the test itself)
    setattr(due, "finish", _die)  # noqa: B010
    async with open_resources(settings) as resources:
        await promote.promote_pending(resources)


async def _die(*_: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


if __name__ == "__main__":
    asyncio.run(main())
