"""Makes the fake chat models of this folder importable by name, as a user's own would be."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
