"""The folders of the checkout, of what is built, and of the built programs."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
PROGRAMS = Path(os.environ.get("BYWASH_PROGRAMS", ROOT / "target/release"))
