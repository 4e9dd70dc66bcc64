"""Sweeps from Python: the same bytes on any executor, and an executor whose worker dies."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import schedlab

VARY = {"workload.loops": [1, 2, 3], "kernel.base_slice_ns": "1000000..4000000:x2"}


def sweep(small: Path, name: str) -> schedlab.Sweep:
    return schedlab.Sweep(small, VARY, folder=small.parent / name, chunk=4)


def files(made: schedlab.Sweep) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(made.folder, "chunks").iterdir())}


def test_any_executor_makes_the_same_bytes(small: Path) -> None:
    here = sweep(small, "here")
    assert here.points == 36
    assert here.run() == 0
    expected = files(here)
    with ThreadPoolExecutor(2) as executor:
        threads = sweep(small, "threads")
        seen: list[tuple[int, int]] = []
        threads.run(executor, progress=lambda done, total: seen.append((done, total)))
    assert files(threads) == expected
    assert seen[-1] == (9, 9)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        other = sweep(small, "processes")
        other.run(processes)
    assert files(other) == expected


def test_a_pool_whose_worker_is_killed_loses_nothing(small: Path) -> None:
    expected = sweep(small, "whole")
    expected.run()
    cut = sweep(small, "cut")

    def kill(done: int, total: int) -> None:
        if done == 2:
            os.kill(next(iter(pool._processes)), signal.SIGKILL)
            time.sleep(0.2)

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        try:
            cut.run(pool, progress=kill, task_seconds=0.0, in_flight=2)
        except BrokenExecutor:
            assert 0 < cut.done < 36
    with ThreadPoolExecutor(2) as executor:
        cut.run(executor)
    assert files(cut) == files(expected)


def test_the_file_for_slurm_starts_the_installed_command(small: Path) -> None:
    expected = sweep(small, "alone")
    expected.run()
    shared = sweep(small, "shared")
    script, job = Path(sys.executable).parent / "schedlab", small.parent / "job.sh"
    subprocess.run([script, "sweep", "submit", shared.folder, "--for", "slurm", "--shards", "2", "--output", job], check=True)
    for share in ("0", "1"):
        subprocess.run(["sh", job], check=True, env={**os.environ, "SLURM_ARRAY_TASK_ID": share})
    assert files(shared) == files(expected)


def test_rows_and_report(small: Path) -> None:
    made = sweep(small, "s")
    made.run(threads=1)
    rows = made.rows()
    assert rows.column("point") == list(range(36))
    assert len(set(rows.column("id"))) == 36
    assert set(rows.column("workload.loops")) == {1, 2, 3}
    assert "against v6.1" in made.report()
    lines = made.report_json()["lines"]
    assert len(lines) == 18
    again = schedlab.Sweep.open(made.folder)
    assert again.done == 36 and "36 of 36" in repr(again)
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(made).height == 36


def test_failed_points_are_reported(tmp_path: Path) -> None:
    scenario = {
        "machine": "1x1x4x1",
        "kernels": ["v6.1"],
        "workload": {"model": "hackbench", "groups": 1, "loops": 1},
    }
    made = schedlab.Sweep(
        schedlab.Scenario(scenario),
        {"machine": ["1x1x4x1", "1x1x2x1"], "workload.cpus": ["0-1", "0-3"]},
        folder=tmp_path / "s",
    )
    assert made.run() == 1
    point, wrong = made.failures[0]
    assert "workload.cpus=0-3" in point and "not in machine" in wrong


def test_bad_plans_are_exceptions(small: Path) -> None:
    with pytest.raises(schedlab.Error, match="workload.loopz"):
        schedlab.Sweep(small, {"workload.loopz": [1]}, folder=small.parent / "s")
    with pytest.raises(schedlab.Error, match="runs backwards"):
        schedlab.Sweep(small, {"workload.loops": "4..1:x2"}, folder=small.parent / "s")
