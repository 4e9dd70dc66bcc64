"""Draws docs/sweeps/kthread-stack.svg from the rows of the example sweep.

    schedlab sweep run scenarios/sweeps/kthread-stack.plan.toml --output kthread-stack
    schedlab sweep gather kthread-stack --output docs/sweeps/kthread-stack.parquet
    python python/examples/kthread_stack.py
"""

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plot
import polars

FOLDER = Path(__file__).resolve().parents[2] / "docs/sweeps"

# The same rows give the same file.
matplotlib.rcParams["svg.hashsalt"] = "schedlab"
rows = polars.read_parquet(FOLDER / "kthread-stack.parquet")
axes_of_plan = ["workload.clients", "machine.freq.min_mhz", "machine.freq.sample_ns", "machine.idle.exit_permille"]
wide = rows.pivot("kernel", index=[*axes_of_plan, "repeat"], values="load file")
base, patched = "v5.5", "v5.5+SIS_KTHREAD_STACK"
change = wide.group_by(axes_of_plan).agg(
    change=100 * (polars.col(patched).mean() / polars.col(base).mean() - 1)
).sort(axes_of_plan)

figure, places = plot.subplots(1, 3, figsize=(10, 3.6), sharey=True)
few = change["workload.clients"] <= 4
for place, (path, label) in zip(
    places,
    [
        ("workload.clients", "clients"),
        ("machine.freq.min_mhz", "slowest clock, MHz"),
        ("machine.freq.sample_ns", "time between two changes of the clock, ms"),
    ],
):
    scale = 1e6 if path.endswith("_ns") else 1
    for chosen, colour, name in [(few, "tab:blue", "up to 4 clients"), (~few, "tab:gray", "more")]:
        points = change.filter(chosen)
        place.scatter(points[path] / scale, points["change"], s=14, color=colour, label=name)
    place.set_xlabel(label)
    place.axhline(0, color="black", linewidth=0.8)
places[2].set_xscale("log")
places[0].set_ylabel("time of a load file\nwith SIS_KTHREAD_STACK, %")
places[0].legend(fontsize="small")
figure.tight_layout()
figure.savefig(FOLDER / "kthread-stack.svg", metadata={"Date": None})
for path in axes_of_plan:
    print(f"{path}: correlation of ranks {change.select(polars.corr(path, 'change', method='spearman')).item():+.2f}")
few_points = change.filter(few)
for path in axes_of_plan[1:]:
    print(f"up to 4 clients, {path}: {few_points.select(polars.corr(path, 'change', method='spearman')).item():+.2f}")
