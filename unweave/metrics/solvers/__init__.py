"""Predictors that metrics fit: trees, boosting, linear models."""
