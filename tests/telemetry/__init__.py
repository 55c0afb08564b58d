"""Issue 5, points 3 and 4: what Loci tells of itself, and what it never tells."""
