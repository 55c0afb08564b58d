"""Tests of rolling summaries."""
