"""Cells against a baseline: the family of tests, the verdicts and the words for them."""
