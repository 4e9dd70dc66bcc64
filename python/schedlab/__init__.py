"""A laboratory for the Linux CPU scheduler.

>>> import schedlab
>>> comparison = schedlab.Scenario("scenarios/sis-util.toml").compare("v6.1", "v6.1+NO_SIS_UTIL")
>>> print(comparison)

Placement is predicted; seconds are modelled.
"""

from schedlab._lab import (
    Audit,
    Comparison,
    Kernel,
    Machine,
    Replay,
    Scenario,
    Trace,
    command,
    detect,
    explain,
    reproduce,
)
from schedlab._schedlab import Columns, Error, engine
from schedlab.sweep import Sweep

__all__ = [
    "Audit",
    "Columns",
    "Comparison",
    "Error",
    "Kernel",
    "Machine",
    "Replay",
    "Scenario",
    "Sweep",
    "Trace",
    "command",
    "detect",
    "engine",
    "explain",
    "reproduce",
]
