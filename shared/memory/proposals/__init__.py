"""What may be stored once a judge or a caller has decided: proposals with their evidence."""
