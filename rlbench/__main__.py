"""``python -m rlbench`` is ``rlbench``."""

from __future__ import annotations

from rlbench.cli import main

if __name__ == "__main__":
    main()
