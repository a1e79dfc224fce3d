"""The table of scores: one row a cell, its columns, and what stands above and below it."""
