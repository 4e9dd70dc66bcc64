"""The search: what it finds on a scenario where the answer is known, and where nothing beats the default."""

from pathlib import Path

import pytest

import schedlab
from schedlab.tune import Answer, Parameter, tune

pytest.importorskip("optuna")

#: Three tasks that spin on one CPU: how often they are preempted depends on the slice, once it is longer than a tick.
SPIN = """machine = "1x1x1x1"
kernels = ["v6.12"]
limit = "200ms"
[workload]
name = "spin"
[[workload.task]]
name = "spin"
count = 3
program = "loop forever; run 100ms; end"
"""


def test_what_is_known_to_be_better_is_found_and_a_search_goes_on(tmp_path: Path) -> None:
    scenario = tmp_path / "spin.toml"
    scenario.write_text(SPIN)

    def search(trials: int) -> Answer:
        return tune(
            [str(scenario)],
            ["base_slice_ns=500000..64000000"],
            # The default is the worst there is.
            kernel="v6.12+base_slice_ns=500000",
            folder=tmp_path / "tuned",
            metrics=["involuntary"],
            trials=trials,
            seeds=2,
            final_seeds=4,
        )

    first = search(8)
    again = search(12)
    assert first.trials == 8 and again.trials == 12
    assert again.best, str(again)
    for finalist in again.best:
        assert finalist.gains[0][1] > 50, str(again)


def test_nothing_is_an_answer(small: Path) -> None:
    answer = tune(
        [str(small)],
        # No task here is throttled, so it cannot matter.
        ["cfs_bandwidth_slice_us=1000..9000"],
        kernel="v6.1",
        folder=small.parent / "nothing",
        trials=8,
        seeds=2,
        final_seeds=4,
    )
    assert answer.best == [] and "nothing beats the default" in str(answer)


def test_bounds_are_checked() -> None:
    kernel = schedlab.Kernel("v6.12")
    assert Parameter.read("SIS_UTIL", kernel).choices == ["on", "off"]
    low, high = Parameter.read("base_slice_ns", kernel).choices
    assert low < 700_000 < high
    for text, says in [
        ("base_slice_ns=1..100", "base_slice_ns is"),
        ("base_slice_ns=9..1", "range"),
        ("SIS_UTLI", "no rule"),
        ("SIS_UTIL=maybe", "one of"),
    ]:
        with pytest.raises(schedlab.Error, match=says):
            Parameter.read(text, kernel)


def test_a_folder_holds_one_search(small: Path) -> None:
    arguments = dict(kernel="v6.1", folder=small.parent / "one", trials=1, seeds=1, final_seeds=2)
    tune([str(small)], ["nr_migrate"], **arguments)  # type: ignore[arg-type]
    with pytest.raises(schedlab.Error, match="another search"):
        tune([str(small)], ["hz"], **arguments)  # type: ignore[arg-type]
