"""The cost of model calls: charges, prices, budgets and reports."""
