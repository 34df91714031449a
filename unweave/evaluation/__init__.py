"""Evaluation of trained models: codes, scores, predicted classes, likelihoods."""
