"""The predictors that metrics fit: trees, boosting, linear models."""
