"""Queue `enrichment`: pending → final successors, kept-raw or failed. One model call for each raw memory."""
