"""Machines, kernels, scenarios, comparisons, traces, audits: what they give, and how they fail."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import schedlab


def test_a_comparison_has_what_the_command_prints(small: Path) -> None:
    comparison = schedlab.Scenario(small).compare()
    assert str(comparison) == schedlab.command("compare", small)
    assert comparison.data == json.loads(schedlab.command("compare", small, "--format", "json"))
    rows = comparison.rows()
    assert set(rows.column("kernel")) == {"v6.1", "v6.1+NO_SIS_UTIL"}
    assert all(isinstance(mean, float) for mean in rows.column("mean"))
    assert "<td>v6.1+NO_SIS_UTIL</td>" in comparison._repr_html_()
    assert comparison.csv().startswith("metric") or "," in comparison.csv()


def test_a_workload_without_figures_of_its_own_has_rows_too() -> None:
    scenario = schedlab.Scenario(
        {
            "machine": "1x1x4",
            "kernels": ["v6.1", "v6.12"],
            "runs": 2,
            "limit": "30ms",
            "workload": {"model": "sleepers", "messengers": 1, "workers": 4},
        }
    )
    comparison = scenario.compare()
    assert {"elapsed", "wakeups/s"} <= set(comparison.rows().column("metric"))
    assert "<td>wakeups/s</td>" in comparison._repr_html_()


def test_threads_do_not_change_the_result(small: Path) -> None:
    scenario = schedlab.Scenario(small)
    assert scenario.compare(threads=1).data == scenario.compare(threads=2).data


def test_tasks_and_machines_can_be_built_in_python() -> None:
    machine = schedlab.Machine({"topology": {"regular": "1x1x4x1"}})
    scenario = schedlab.Scenario(
        {
            "machine": machine,
            "kernels": [schedlab.Kernel("v6.12")],
            "limit": "50ms",
            "workload": {
                "name": "two",
                "task": [{"name": "spin", "count": 6, "program": "loop forever; run 3ms; sleep 1ms; end"}],
            },
        }
    )
    trace = scenario.trace()
    events = trace.rows().column("event")
    assert len(trace) == len(events) > 10
    assert "sched_switch" in events
    assert any(comm and comm.startswith("spin") for comm in trace.rows().column("next_comm"))


def test_a_kernel_knows_its_rules() -> None:
    kernel = schedlab.Kernel("v6.1")
    assert kernel["SIS_UTIL"] == "on"
    assert kernel.with_("NO_SIS_UTIL")["sis_util"] == "off"
    assert "SIS_UTIL" in kernel.rules().column("name")
    with pytest.raises(schedlab.Error, match="no rule"):
        kernel["SIS_UTLI"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: schedlab.Kernel("nonsense"), "nonsense"),
        (lambda: schedlab.Machine("zen9"), "zen9"),
        (lambda: schedlab.Scenario("nothing.toml"), "nothing.toml"),
        (lambda: schedlab.Trace("nothing.dat"), "nothing.dat"),
        (lambda: schedlab.Audit("nothing.dat"), "nothing.dat"),
        (lambda: schedlab.command("comparr"), "comparr"),
    ],
)
def test_errors_are_exceptions_with_the_commands_sentence(make, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(schedlab.Error, match=says):
        make()
    assert issubclass(schedlab.Error, ValueError)


def test_an_audit_of_a_recording(root: Path) -> None:
    recordings = sorted(root.glob("traces/*/*/facts"))
    if not recordings:
        pytest.skip("no recording with facts")
    folder = recordings[0].parent
    audit = schedlab.Audit(folder)
    assert audit.data
    assert str(audit) == schedlab.command("audit", folder)


def test_arrow_takes_rows_without_pyarrow_in_between(small: Path) -> None:
    polars = pytest.importorskip("polars")
    trace = schedlab.Scenario(small).trace("v6.1")
    for _ in range(2):
        frame = polars.DataFrame(trace)
        assert frame.height == len(trace)
        assert frame["event"].to_list() == trace.rows().column("event")


def test_columns_keep_nothing_and_text() -> None:
    columns = schedlab.Columns.from_lists({"a": [1, None], "b": [0.5, 1], "c": ["x", None]})
    assert [columns.column(name) for name in columns.column_names] == [[1, None], [0.5, 1.0], ["x", None]]
    assert len(columns) == 2
    with pytest.raises(schedlab.Error, match="there are a, b, c"):
        columns.column("d")


def test_ctrl_c_ends_a_long_run(root: Path) -> None:
    script = f"""
import os, signal, threading, time, schedlab
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begun = time.monotonic()
try:
    schedlab.Scenario({str(root / "scenarios/preempt-hackbench.toml")!r}).compare(runs=100000)
except KeyboardInterrupt:
    print("heard", time.monotonic() - begun < 20)
"""
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert printed.stdout.strip() == "heard True", printed.stderr


def test_the_command_is_installed(small: Path) -> None:
    script = Path(sys.executable).parent / "schedlab"
    printed = subprocess.run([script, "compare", small], capture_output=True, text=True)
    assert printed.returncode == 0 and printed.stdout == schedlab.command("compare", small)
    wrong = subprocess.run([script, "compare", "nothing.toml"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "nothing.toml" in wrong.stderr
