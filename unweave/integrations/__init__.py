"""Interfaces to other libraries and file formats."""
