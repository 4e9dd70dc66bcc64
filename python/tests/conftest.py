"""What tests share: the project's folder, and a scenario that takes milliseconds."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SMALL = """machine = "1x1x2x1"
kernels = ["v6.1", "v6.1+NO_SIS_UTIL"]
runs = 2
[workload]
model = "hackbench"
groups = 1
loops = 2
"""


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path
