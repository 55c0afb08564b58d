"""Start real databases that only tests use."""
