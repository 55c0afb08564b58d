"""Texts as the index sees them: tokens, stems, keyword and embedding texts, and term weights."""
