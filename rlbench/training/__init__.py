"""One run: from a specification to trained weights and the numbers on the way."""
