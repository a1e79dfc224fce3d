"""The version, where every layer can import it."""

from __future__ import annotations

__version__ = "0.1.0"
