"""Tests that run against both servers of Qdrant's protocol: the local process and the real server."""
