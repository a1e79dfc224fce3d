"""Load plugins, know every component by name, read selections such as ``gae:lam=0.9``."""
