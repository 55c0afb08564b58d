"""The vector store of one machine: Qdrant's own engine behind the part of Qdrant's REST that Loci uses.

There is no Qdrant server among the packages that pip can install, but its engine is one
(`qdrant_edge`). This process owns the engine's shards, one per collection, and answers their
protocol, so that every other line of Loci speaks to a URL and cannot tell the difference.
`python -m services.local.vectors --port P --data DIR` runs it; it listens once all is loaded.

Three decisions, each measured (2 cores, 100 000 points of 384 floats):
- One thread, no locks. The engine holds Python's interpreter lock for the whole of every call, so
  threads would add cost and answer nothing sooner. A request is read, then served in one piece:
  an alias swap falls between two searches, never into one.
- No vector graph: dense search compares with every vector. That takes 7 ms, and building the graph
  would take 164 s during which nothing else is answered. It also makes every search exact. Beyond
  some 500 000 points, run a real Qdrant and set `LOCI_QDRANT_URL`.
- An acknowledged write is in the engine's log, in the hands of the kernel: it survives `kill -9`
  of this process. It is forced to the disk at rest (housekeeping.py), as the server does every few
  seconds; what a power cut takes, `loci reindex` brings back from Postgres.

What is not known here is refused with a 400 that says so. Hints that only tune speed
(`hnsw_ef`, `hnsw_config`, `on_disk`, …) are taken and have no effect.
"""
