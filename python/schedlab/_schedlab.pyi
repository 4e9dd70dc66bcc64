"""What the package needs of Rust: calls of the command, columns for Arrow, chunks of sweeps."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Optional, Union, final

__all__ = [
    "Columns",
    "Error",
    "SweepPlan",
    "SweepStore",
    "call",
    "command_line",
    "engine",
    "mean_interval",
    "read_trace",
    "to_toml",
]

engine: str
"""Version of all that a figure depends on: of the package, and a hash of its sources."""

class Error(ValueError):
    """Bad input: what is wrong, where, and the way out."""

@final
class Columns:
    """Columns of one length. pandas, Polars, DuckDB and pyarrow take them without a copy in Python."""

    @staticmethod
    def from_lists(columns: dict[str, list[Any]]) -> Columns:
        """From a dict of lists: of ints, floats or texts, with None where there is no value."""
    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
    @property
    def num_rows(self) -> int:
        """How many rows there are."""
    def __len__(self) -> int: ...
    def column(self, name: str) -> list[Any]:
        """A column as a list."""
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The columns as an Arrow C stream, for any library that takes one. It can be asked for more than once."""

@final
class SweepPlan:
    """A plan: all that its points are."""

    def __new__(
        cls,
        file: str,
        text: str,
        folder: Union[str, PathLike[str]],
        axes: list[tuple[str, str]],
        sample: str,
        seeds: Optional[int] = None,
        seed: Optional[int] = None,
        chunk: Optional[int] = None,
    ) -> SweepPlan: ...
    @staticmethod
    def from_toml(text: str) -> SweepPlan:
        """A plan from the text that `to_toml` gave."""
    def to_toml(self) -> str:
        """The plan as text: whoever has it can run its points."""
    @property
    def points(self) -> int:
        """How many points there are."""
    @property
    def chunks(self) -> int:
        """How many chunks there are."""
    def point(self, index: int) -> str:
        """What a point sets, in one line."""
    def run_chunk(self, chunk: int) -> tuple[bytes, int]:
        """Runs a chunk: the bytes of its file, and how many points failed."""

@final
class SweepStore:
    """The folder of a sweep."""

    def __new__(cls, folder: Union[str, PathLike[str]], plan: Optional[SweepPlan] = None) -> SweepStore: ...
    @property
    def plan(self) -> SweepPlan:
        """Its plan."""
    def missing(self, retry: bool = False) -> list[int]:
        """Chunks that are not finished; with `retry` those too that have failed points."""
    def put(self, chunk: int, bytes: bytes) -> None:
        """Puts the bytes of a finished chunk in their place."""
    def status(self) -> tuple[int, int, int]:
        """Points, points done, points failed."""
    def failures(self, most: int) -> list[tuple[str, str]]:
        """Failed points: what each sets, and what is wrong."""
    def run(
        self,
        threads: int = 0,
        retry: bool = False,
        cache: Optional[Union[str, PathLike[str]]] = None,
        cache_limit: int = ...,
        progress: Optional[Callable[[int, int], object]] = None,
    ) -> tuple[int, int]:
        """Runs what is missing on this machine's cores: points done, points failed. Ctrl-C keeps what is done."""
    def rows(self) -> Columns:
        """All finished rows, in the order of the points."""
    def report(
        self, metric: Optional[str] = None, against: Optional[str] = None, most: int = 5
    ) -> tuple[str, str]:
        """A report as text and as JSON."""

def call(arguments: list[str]) -> tuple[int, str]:
    """Calls the command: its exit status and what it would print."""

def command_line(arguments: list[str]) -> int:
    """Is the command, with the arguments and signals of this process."""

def mean_interval(values: list[float], confidence: float) -> tuple[float, float, float]:
    """Mean of values, and the interval in which it lies with this confidence."""

def to_toml(json: str) -> str:
    """A JSON object as the text of a TOML file."""

def read_trace(path: Union[str, PathLike[str]]) -> tuple[Columns, list[str]]:
    """Reads a trace of any format: its events as columns, and what was lost or not understood in a sentence each."""
