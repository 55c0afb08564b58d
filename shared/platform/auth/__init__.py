"""Tenants and their keys: who may ask."""
