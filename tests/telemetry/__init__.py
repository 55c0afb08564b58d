"""What Loci reports about itself in logs, traces and metrics, and what it never reports."""
