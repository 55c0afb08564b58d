"""What the judge of statements is trusted by: labelled pairs of evidence and statement."""
