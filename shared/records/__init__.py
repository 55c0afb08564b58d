"""What every kind of record needs: a transaction that knows what follows its commit."""
