"""Measure whether what is remembered is true: `python -m benchmarks.truth --data FILE --judge oracle`.

A stand-in for a language model proposes the right and the wrong texts of a data file, and a stand-in for a
judge answers by the file's labels. What becomes of each text is read over HTTP. No data is part of the
project.
"""
