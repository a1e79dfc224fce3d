"""What is compared: records grouped into cells, the metric, the baseline and the pairs by seed."""
