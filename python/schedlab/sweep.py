"""Thousands of runs of one scenario, here or on any executor.

A sweep lives in a folder: a plan, and a Parquet file for each finished chunk of its points. Whatever runs a chunk
makes the same bytes, so an interrupted sweep goes on where it stopped, with the same executor or another.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from functools import lru_cache
from typing import Any, Optional, Union

from schedlab import _schedlab
from schedlab._schedlab import Columns, Error

__all__ = ["Sweep", "dask_executor", "ray_executor"]

Path = Union[str, "os.PathLike[str]"]

#: A task is tried so often before its error is raised.
TRIES = 4


class Sweep:
    """A plan of points in a folder, and what came of them.

    `scenario` is the path of a scenario file, or a `schedlab.Scenario`. `vary` maps the path of a parameter to its
    values: a list, or a text as the command line has it (`"1,2,4..64:x2"`). Paths are `machine`, `kernel`, `row`,
    `seed`, `limit`, a place in the scenario (`workload.groups`), a part of the kernel (`kernel.base_slice_ns`) or a
    constant of the machine (`machine.cost.syscall_ns`). `sample` is `grid`, `random:N` or `latin:N`.

    >>> sweep = Sweep("scenarios/sis-util.toml", {"workload.workers": "1,2,4..32:x2"}, seeds=10, folder="sis.sweep")
    >>> sweep.run()
    >>> print(sweep.report())
    """

    def __init__(
        self,
        scenario: Any,
        vary: Mapping[str, Union[str, Iterable[Any]]],
        *,
        folder: Path,
        seeds: Optional[int] = None,
        sample: str = "grid",
        seed: Optional[int] = None,
        chunk: Optional[int] = None,
    ) -> None:
        from schedlab import Scenario

        if not isinstance(scenario, Scenario):
            scenario = Scenario(scenario)
        axes = [(path, _values(values)) for path, values in vary.items()]
        plan = _schedlab.SweepPlan(
            scenario.file, scenario.text, scenario.folder, axes, sample, seeds, seed, chunk
        )
        self._store = _schedlab.SweepStore(folder, plan)
        self.folder = os.fspath(folder)

    @classmethod
    def open(cls, folder: Path) -> Sweep:
        """A sweep that was begun before, by the command or from Python."""
        self = cls.__new__(cls)
        self._store = _schedlab.SweepStore(folder)
        self.folder = os.fspath(folder)
        return self

    @property
    def points(self) -> int:
        """How many points it has."""
        return self._store.plan.points

    @property
    def done(self) -> int:
        """How many points are in finished chunks, failed ones included."""
        return self._store.status()[1]

    @property
    def failures(self) -> list[tuple[str, str]]:
        """The first hundred points that failed: what each sets, and what is wrong."""
        return self._store.failures(100)

    def point(self, index: int) -> str:
        """What a point sets, in one line."""
        return self._store.plan.point(index)

    def run(
        self,
        executor: Optional[futures.Executor] = None,
        *,
        threads: int = 0,
        retry: bool = False,
        cache: Optional[Path] = None,
        progress: Optional[Callable[[int, int], object]] = None,
        task_seconds: float = 1.0,
        in_flight: int = 64,
    ) -> int:
        """Runs what is not done yet and returns how many points of the sweep have failed.

        Without an executor it runs on `threads` threads of this machine (0: one per processor). With one, tasks of
        whole chunks that take about `task_seconds` are sent to it, at most `in_flight` at a time; their workers need
        schedlab, but no file system in common: the files are written here. A task whose worker dies is sent again,
        unless the executor does that itself. `progress` is called with points (or chunks, with an executor) that are
        done and that there are. `retry` runs failed points again. `cache` is a folder of finished points that plans
        share. Ctrl-C keeps what is done.
        """
        if executor is None:
            self._store.run(threads, retry, cache, progress=progress)
        else:
            self._run_on(executor, retry, progress, task_seconds, in_flight)
        return self._store.status()[2]

    def _run_on(
        self,
        executor: futures.Executor,
        retry: bool,
        progress: Optional[Callable[[int, int], object]],
        task_seconds: float,
        in_flight: int,
    ) -> None:
        plan = self._store.plan.to_toml()
        missing = self._store.missing(retry)
        total, done, spent = len(missing), 0, 0.0
        waiting = list(reversed(missing))
        tries: dict[int, int] = {}
        running: dict[futures.Future[Any], list[int]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < in_flight:
                    # The time per chunk is estimated from finished chunks.
                    each = spent / done if done else task_seconds
                    count = min(max(1, round(task_seconds / max(each, 1e-6))), len(waiting))
                    chunks = [waiting.pop() for _ in range(count)]
                    running[executor.submit(_work, plan, chunks)] = chunks
                finished, _ = futures.wait(running, timeout=0.2, return_when=futures.FIRST_COMPLETED)
                for future in finished:
                    chunks = running.pop(future)
                    try:
                        results, seconds = future.result()
                    except (Error, futures.BrokenExecutor):
                        # A pool whose process died takes no more tasks; finished chunks are kept.
                        raise
                    except Exception:
                        tries[chunks[0]] = tries.get(chunks[0], 1) + 1
                        if tries[chunks[0]] > TRIES:
                            raise
                        waiting.extend(reversed(chunks))
                        continue
                    for chunk, data in results:
                        self._store.put(chunk, data)
                    done += len(results)
                    spent += seconds
                    if progress is not None:
                        progress(done, total)
        finally:
            for future in running:
                future.cancel()

    def rows(self) -> Columns:
        """All finished rows, in the order of the points, for any library that takes an Arrow stream.

        Columns: `id` (hash of all that determines the point), `point` (its number), one for each parameter that
        varies, `row` where the scenario has several, `kernel`, `repeat`, `seed`, `error` (empty unless the point
        failed), the measures of the workload in their units, and counts; names end in `_ns` for nanoseconds.
        """
        return self._store.rows()

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The rows as an Arrow C stream."""
        return self.rows().__arrow_c_stream__(requested_schema)

    def report(self, metric: Optional[str] = None, against: Optional[str] = None, most: int = 5) -> str:
        """Where each kernel is better or worse than one of them, as `schedlab sweep report` prints it."""
        return self._store.report(metric, against, most)[0]

    def report_json(self, metric: Optional[str] = None, against: Optional[str] = None) -> dict[str, Any]:
        """The report as data: a line for each combination and kernel."""
        return dict(json.loads(self._store.report(metric, against)[1]))

    def __repr__(self) -> str:
        points, done, failed = self._store.status()
        return f"<Sweep {self.folder}: {done} of {points} points done, {failed} failed>"

    def _repr_html_(self) -> str:
        from html import escape

        if self.done == 0:
            return f"<pre>{escape(repr(self))}</pre>"
        return f"<pre>{escape(self.report())}</pre>"


def _values(values: Union[str, Iterable[Any]]) -> str:
    """Values as the command line has them."""
    if isinstance(values, str):
        return values

    def one(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (int, float)):
            return repr(value)
        return f'"{value}"'

    return ",".join(one(value) for value in values)


@lru_cache(maxsize=4)
def _plan(text: str) -> _schedlab.SweepPlan:
    return _schedlab.SweepPlan.from_toml(text)


def _work(plan: str, chunks: list[int]) -> tuple[list[tuple[int, bytes]], float]:
    """What a worker does: the files of some chunks, and how long they took."""
    begun = time.monotonic()
    files = [(chunk, _plan(plan).run_chunk(chunk)[0]) for chunk in chunks]
    return files, time.monotonic() - begun


def ray_executor(**options: Any) -> futures.Executor:
    """An executor on the Ray cluster that `ray.init` has joined. `options` are those of `ray.remote`.

    Ray itself sends a task again whose worker died.
    """
    import ray

    class RayExecutor(futures.Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
            chosen = {"num_cpus": 1, "max_retries": TRIES, **options}
            reference = ray.remote(fn).options(**chosen).remote(*args, **kwargs)
            future: futures.Future[Any] = reference.future()
            return future

    return RayExecutor()


def dask_executor(client: Any, **options: Any) -> futures.Executor:
    """An executor on the cluster of a `distributed.Client`. `options` are those of `Client.submit`.

    Dask itself sends a task again whose worker died.
    """
    executor: futures.Executor = client.get_executor(**{"retries": TRIES, "pure": False, **options})
    return executor
