"""Seeds spent only where a verdict is open: the course of a race, its table and its words."""
