"""A local embedding model behind the protocol that Loci speaks to every other one.

A server of its own and not a library call, so that there is one way to ask for a vector: demo,
benchmarks and closed networks run the same client code, time-outs and failures as a hosted model.
"""
