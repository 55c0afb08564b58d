"""Leave out what libraries import only because it is installed.

structlog imports rich to colour tracebacks in a terminal. Loci's processes write JSON lines, so they never
use it, and it would take 4 MiB in each of them.
"""

import sys
from types import ModuleType
from typing import cast


def leave_out_rich() -> None:
    """Let `import rich` fail in this process from now on, as if it were not installed.

    Call it before the process imports anything that logs. A command that prints tables must not.
    """
    # The import system refuses a module that it finds to be None; its type doesn't say so.
    sys.modules.setdefault("rich", cast("ModuleType", None))
