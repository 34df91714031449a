"""Data sets that are rendered."""
