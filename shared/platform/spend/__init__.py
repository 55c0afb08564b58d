"""What model calls cost: charges, prices, budgets, reports."""
