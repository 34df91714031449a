"""Rendered data sets."""
