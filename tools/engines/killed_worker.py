"""A sweep on a real cluster of two workers, one of which is killed with -9 in the middle.

Its files must be those of a run on this machine's threads: nothing lost, nothing twice, the same bytes.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import schedlab
from schedlab.sweep import dask_executor, ray_executor

SCENARIO = {
    "machine": "1x1x4x1",
    "kernels": ["v6.1", "v6.1+NO_SIS_UTIL"],
    "workload": {"model": "hackbench", "groups": 2, "loops": 100},
}
VARY = {"workload.groups": [1, 2, 3, 4], "workload.loops": [50, 100, 200]}


def begun(folder: Path) -> schedlab.Sweep:
    return schedlab.Sweep(schedlab.Scenario(SCENARIO), VARY, seeds=8, chunk=4, folder=folder)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "chunks").iterdir())}


def pids_of_ray_workers() -> list[int]:
    """Processes in which Ray runs tasks of ours: they name themselves after the function."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line.startswith(b"ray::_work"):
                found.append(int(entry.name))
    return found


def ray_cluster() -> tuple[Any, Any]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    return ray_executor(), pids_of_ray_workers


def dask_cluster() -> tuple[Any, Any]:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    client = Client(cluster)

    def pids() -> list[int]:
        return list(client.run(os.getpid).values())

    return dask_executor(client), pids


def main(engine: str, folder: str) -> int:
    root = Path(folder)
    alone = begun(root / "alone")
    alone.run()
    expected = files(root / "alone")

    executor, pids = {"ray": ray_cluster, "dask": dask_cluster}[engine]()
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if not killed and done >= total // 4:
            for _ in range(50):
                if workers := pids():
                    os.kill(workers[0], signal.SIGKILL)
                    killed.append(workers[0])
                    return
                time.sleep(0.1)

    shared = begun(root / "shared")
    shared.run(executor, progress=kill, task_seconds=0.2, in_flight=4)
    found = files(root / "shared")
    points = shared.rows().column("point")
    assert killed, "no worker was killed, so nothing was tested"
    assert points == list(range(shared.points)), "points are lost or twice"
    assert found == expected, "other bytes than without a cluster"
    print(f"engines: {engine}: worker {killed[0]} killed, {shared.points} points in {len(found)} files, the same bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
