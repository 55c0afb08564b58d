"""A local vector server: Qdrant's own engine behind the part of Qdrant's REST API that Loci uses.

pip cannot install a Qdrant server, but it can install Qdrant's engine (`qdrant_edge`). This process
owns the engine's shards, one per collection, and serves them at a URL, so all other code uses it
like any Qdrant. `python -m services.local.vectors --port P --data DIR` runs it.

Three decisions were measured (2 cores, 100 000 points of 384 floats):
- One thread and no locks. The engine holds Python's interpreter lock during every call, so threads
  would make nothing faster. A request is processed without interruption once it is read, so an
  alias never changes during a search.
- No vector graph. A dense search compares the query with every vector, which takes 7 ms and is
  exact. Building a graph would take 164 s, during which no request is served. With more than some
  500 000 points, run a Qdrant server and set `LOCI_QDRANT_URL`.
- A write is acknowledged when the engine has passed it to the kernel, so it survives `kill -9` of
  this process. It is synced to disk a little later (flush.py), as a Qdrant server does every few
  seconds. What a power cut destroys, `loci reindex` restores from Postgres.

Unsupported requests are refused with 400. Options that affect only speed (`hnsw_ef`,
`hnsw_config`, `on_disk`, …) are accepted and have no effect.
"""
