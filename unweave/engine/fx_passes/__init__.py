"""Rewritings of the recorded training step before it is compiled."""
