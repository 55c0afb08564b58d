"""A local embedding model behind the HTTP protocol of hosted models.

It is a server and not a library call, so that there is one way to get an embedding. The demo, the
benchmarks and closed networks then use the same client code, time-outs and failures as a hosted model.
"""
