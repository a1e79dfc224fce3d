"""Results as one HTML page that needs nothing else: verdicts, numbers, figures, samples."""
