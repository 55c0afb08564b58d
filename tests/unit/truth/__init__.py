"""Unit tests of the benchmark `benchmarks.truth`."""
