"""A small language model on this machine, behind the HTTP protocol of hosted models.

It is a server and not a library call, for the reason of `services.local.embeddings`. Nothing of it is part
of the installation: `make local-model` unpacks the weights and llama.cpp's server below the data directory.
The model is weak. It shows that the parts work together, and that a weak model loses no fact.
"""
