"""One file per noun of the contract."""
