"""What is read off trained models: codes, scores, classes, likelihoods."""
