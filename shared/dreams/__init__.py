"""Dreams: what a scope's memory becomes while nobody is speaking, and how each change is vouched for."""
