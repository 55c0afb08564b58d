"""Tests of facts taken out of conversations, without databases or a model."""
