"""What Loci knows of languages: names, numbers, days and negations of a text. Pure functions, without I/O."""
