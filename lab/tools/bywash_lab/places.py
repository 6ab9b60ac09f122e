"""The folders of the checkout and of the built programs."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(os.environ.get("BYWASH_PROGRAMS", ROOT / "target/release"))
