"""From results on disk to what people read."""
