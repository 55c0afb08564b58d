"""The whole stack on one machine: real stores from packages, and the same processes as in production.

Read `stack.py` first. `postgres.py`, `redis.py` and `qdrant.py` each run one store in a folder of
its own and are used alone by the tests. Nothing here is imported by a gateway or a worker.
"""
