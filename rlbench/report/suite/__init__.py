"""Algorithms over several tasks, on one scale."""
