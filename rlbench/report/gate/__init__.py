"""May this change go in: is any cell of NEW worse than it was in OLD."""
