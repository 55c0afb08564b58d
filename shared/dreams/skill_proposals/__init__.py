"""What dreams propose about skills, and what becomes of it: published, refused or taken back."""
