"""Create and drop databases of the server that all tests share."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any
from urllib.parse import urlsplit

import asyncpg


def run_in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end in another thread, because this one may have a running event loop."""
    thread = threading.Thread(target=asyncio.run, args=(work,))
    thread.start()
    thread.join()


async def shorten_logins(url: str) -> None:
    """Store the password with one round of hashing: each of many thousand logins would take 4096."""
    server = await asyncpg.connect(url)
    try:
        login = urlsplit(url)
        await server.execute("SET scram_iterations = 1")
        await server.execute(f"ALTER ROLE {login.username} PASSWORD '{login.password}'")
    finally:
        await server.close()


async def drop_database(url: str) -> None:
    base, _, name = url.rpartition("/")
    server = await asyncpg.connect(f"{base}/postgres")
    try:
        await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await server.close()


async def empty_tables(url: str, *tables: str) -> None:
    """Delete all rows of these tables, whoever they belong to."""
    database = await asyncpg.connect(url)
    try:
        await database.execute(f"TRUNCATE {', '.join(tables)}")
    finally:
        await database.close()


async def copy_database(template_url: str, name: str) -> None:
    """Copy the migrated database. Nothing else may be connected to it, so no test uses it directly."""
    server = await asyncpg.connect(f"{template_url.rsplit('/', 1)[0]}/postgres")
    try:
        await server.execute(f"CREATE DATABASE {name} TEMPLATE loci STRATEGY file_copy")
    finally:
        await server.close()
