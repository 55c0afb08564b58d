"""The whole of Loci on one machine: real databases from packages, and the processes of production.

Read `stack.py` first. `postgres.py`, `redis.py` and `qdrant.py` each run one database in a folder
of its own (`server.py`); the tests use them alone. No gateway or worker imports this package.
"""
