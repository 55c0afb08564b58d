"""Ranking: pure functions from candidates to an order. They use no database and no model."""
