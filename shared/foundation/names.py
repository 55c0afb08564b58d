"""How names are compared that must not differ in case alone."""


def fold(name: str) -> str:
    """Return the form in which ids of sessions, names of scratch stores and working-memory keys are compared.

    These names are ASCII, so that no normalisation of Unicode can make two of them equal. Ids of agents and
    users, and keys of preferences, are compared exactly.
    """
    return name.casefold()
