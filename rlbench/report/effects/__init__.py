"""Main effects and interactions of a grid, as contrasts within each seed."""
