"""Machines, kernels, scenarios, comparisons, traces, audits and replays, each over a verb of the command."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, Optional, Union

from schedlab import _schedlab
from schedlab._schedlab import Columns, Error

AnyPath = Union[str, "os.PathLike[str]"]


def command(*arguments: AnyPath) -> str:
    """What the command `schedlab` prints for these arguments. Any verb and option of it can be called so.

    Raises `schedlab.Error` with its sentence where the command has exit status 2.
    """
    return _schedlab.call([os.fspath(argument) for argument in arguments])[1]


def _json(*arguments: AnyPath) -> Any:
    return json.loads(command(*arguments, "--format", "json"))


def _options(**options: Any) -> list[str]:
    """Options of the command; those that are None or False are not given."""
    arguments = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        option = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(option)
        elif isinstance(value, (list, tuple)):
            arguments += [part for one in value for part in (option, str(one))]
        else:
            arguments += [option, str(value)]
    return arguments


class _Texts:
    """Something that prints itself as the command does."""

    def __str__(self) -> str:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class Machine(_Texts):
    """A machine: CPUs, cores, caches and nodes, and what things cost there.

    `source` is a preset (`zen3-2s`), a regular machine (`2x8x8x2`: sockets, caches, cores, threads), `host`, the path
    of a file (a machine's TOML, a saved sysfs folder or tar, `lscpu -p`, hwloc XML), or a dict as a machine's TOML
    has it: `{"name": "mine", "topology": {..}, "cost": {..}}`.
    """

    def __init__(self, source: Union[AnyPath, Mapping[str, Any]]) -> None:
        self._kept: Optional[tempfile.TemporaryDirectory[str]] = None
        self._text: Optional[str] = None
        if isinstance(source, Mapping):
            self._kept = tempfile.TemporaryDirectory(prefix="schedlab-")
            self._text = _schedlab.to_toml(json.dumps(dict(source)))
            path = Path(self._kept.name) / "machine.toml"
            path.write_text(self._text)
            self.name = str(path)
        else:
            self.name = os.fspath(source)
        command("topo", self.name)

    def topology(self, kernel: Optional[Union[str, Kernel]] = None) -> Any:
        """CPUs, caches, nodes and the scheduling domains that a kernel builds there, as data."""
        return _json("topo", self.name, *_options(kernel=kernel))

    def __str__(self) -> str:
        return command("topo", self.name)

    def __repr__(self) -> str:
        return f"<Machine {self.name}>"


class Kernel(_Texts):
    """A kernel: a released one plus or minus any rule, as `v6.1+NO_SIS_UTIL` or `v6.12+base_slice_ns=3000000`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rules = _json("features", "--kernel", name)

    def rules(self) -> Columns:
        """Every switch, rule and number: its name, its value here, and what it does."""
        entries = self._rules["entries"]
        return Columns.from_lists(
            {key: [entry[key] for entry in entries] for key in ("kind", "name", "value", "sentence", "source")}
        )

    def __getitem__(self, rule: str) -> str:
        """The value of a rule: `on` or `off`, the name of its form, or a number as text."""
        for entry in self._rules["entries"]:
            if entry["name"].lower() == rule.lower():
                return str(entry["value"])
        raise Error(f'there is no rule "{rule}"; Kernel.rules() has all')

    def with_(self, *parts: str) -> Kernel:
        """The same with parts added: `kernel.with_("NO_SIS_UTIL", "base_slice_ns=3000000")`."""
        return Kernel("+".join((self.name, *parts)))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Kernel {self.name}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(command('features', '--kernel', self.name))}</pre>"


class Scenario(_Texts):
    """One experiment: a machine, kernels, what runs, and seeds.

    `source` is the path of a scenario (`.toml`) or of an rt-app file (`.json`), or a dict as the file has it. In a
    dict, `machine` may be a `Machine` and each of `kernels` a `Kernel`:

    >>> Scenario({
    ...     "machine": "1x1x4x1",
    ...     "kernels": ["v6.12"],
    ...     "workload": {"name": "two", "task": [{"name": "spin", "count": 8, "program": "loop forever; run 3ms; sleep 1ms; end"}]},
    ... })
    """

    def __init__(self, source: Union[AnyPath, Mapping[str, Any]]) -> None:
        self._kept: Optional[tempfile.TemporaryDirectory[str]] = None
        if isinstance(source, Mapping):
            self._kept = tempfile.TemporaryDirectory(prefix="schedlab-")
            path = Path(self._kept.name) / "scenario.toml"
            table = dict(source)
            machine = table.get("machine")
            if isinstance(machine, Mapping):
                machine = Machine(machine)
            if isinstance(machine, Machine):
                table["machine"] = machine.name
                if machine._text is not None:
                    # Relative to the scenario, so that the same dict gives the same text anywhere.
                    path.with_name("machine.toml").write_text(machine._text)
                    table["machine"] = "machine.toml"
            if "kernels" in table:
                table["kernels"] = [str(kernel) for kernel in table["kernels"]]
            path.write_text(_schedlab.to_toml(json.dumps(table)))
            self.file = str(path)
        else:
            self.file = os.fspath(source)
            path = Path(self.file)
        try:
            #: The text of the file.
            self.text = path.read_text()
        except OSError as error:
            raise Error(f"{self.file}: {error.strerror}; check its spelling and location") from None
        #: The folder in which files are looked for that it names.
        self.folder = str(path.parent)

    def compare(
        self,
        *kernels: Union[str, Kernel],
        machine: Optional[Union[str, Machine]] = None,
        runs: Optional[int] = None,
        seed: Optional[int] = None,
        limit: Optional[str] = None,
        without: Optional[str] = None,
        rule: Optional[str] = None,
        threads: int = 0,
    ) -> Comparison:
        """Runs it under kernels, the baseline first (the scenario's own if none is given), and compares them.

        `runs` paired seeds from `seed` on; each run ends after `limit` of virtual time (`"10s"`); `without` turns
        mechanisms of the hardware off (`"smt,cache-warmth"`); `threads` is 0 for one per processor. One kernel is
        run and not compared.
        """
        if isinstance(machine, Machine):
            machine = machine.name
        options = _options(
            machine=machine, runs=runs, seed=seed, limit=limit, without=without, rule=rule, threads=threads
        )
        named = ",".join(str(kernel) for kernel in kernels)
        verb = "run" if len(kernels) == 1 else "compare"
        return Comparison([verb, self.file, *(["--kernel", named] if named else []), *options])

    def trace(
        self,
        kernel: Optional[Union[str, Kernel]] = None,
        *,
        row: Optional[str] = None,
        seed: Optional[int] = None,
        machine: Optional[Union[str, Machine]] = None,
        limit: Optional[str] = None,
        events: Optional[str] = None,
    ) -> Trace:
        """The events of one run, the decisions with their reasons among them.

        `kernel` is the scenario's last one if not given, `row` its first; `events` are names with commas between.
        """
        if isinstance(machine, Machine):
            machine = machine.name
        options = _options(kernel=kernel, row=row, seed=seed, machine=machine, limit=limit, events=events)
        with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
            path = Path(folder) / "run.jsonl"
            command("trace", self.file, *options, "--output", path)
            return Trace(path)

    def why(
        self, kernel: Optional[Union[str, Kernel]] = None, *, most: int = 40, **options: Any
    ) -> list[dict[str, Any]]:
        """The decisions of one run, each with its time in ns, CPU and a sentence.

        Options are those of `schedlab why`: `task`, `start` and `end` for `--from` and `--to`, `kind`, `row`, `seed`.
        """
        renamed = {{"start": "from", "end": "to"}.get(name, name): value for name, value in options.items()}
        answers: list[dict[str, Any]] = _json("why", self.file, *_options(kernel=kernel, most=most, **renamed))
        return answers

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Scenario {self.file}>"


class Comparison(_Texts):
    """What came of a scenario: a table of every figure under every kernel."""

    def __init__(self, arguments: list[str]) -> None:
        self._arguments = arguments
        self._data = _json(*arguments)

    @property
    def data(self) -> dict[str, Any]:
        """All of it, as `schedlab compare --format json` has it."""
        return dict(self._data)

    @property
    def why(self) -> list[str]:
        """The reasons behind the difference, a sentence each."""
        return list(self._data["why"])

    @property
    def holds(self) -> bool:
        """Whether everything came out that the scenario expects."""
        return all(expectation["met"] for expectation in self._data["expectations"])

    def rows(self) -> Columns:
        """A row for each figure, row of the scenario and kernel: mean, deviation, change, interval and verdict.

        The workload's own figures come first, then those that every run has, such as wake-up latency.
        """
        return Columns.from_lists(_flat(self._data["comparison"], self._data["figures"]))

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The rows as an Arrow C stream."""
        return self.rows().__arrow_c_stream__(requested_schema)

    def csv(self) -> str:
        """The table as CSV. The runs are made again, with the same figures."""
        return command(*self._arguments, "--format", "csv")

    def markdown(self) -> str:
        """The table as Markdown. The runs are made again, with the same figures."""
        return command(*self._arguments, "--format", "md")

    def __str__(self) -> str:
        return command(*self._arguments)

    def __repr__(self) -> str:
        return f"<Comparison {' '.join(self._arguments)}>"

    def _repr_html_(self) -> str:
        rows = self.rows()
        names = rows.column_names
        cells = [rows.column(name) for name in names]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        lines = (
            "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in line) + "</tr>" for line in zip(*cells)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))


class Trace(_Texts):
    """The events of a run or a recording: a row for each, a column for each field of its tracepoint.

    `file` is a recording of any format: text of tracefs, trace-cmd or perf script, trace.dat, perf.data, Perfetto.
    Times are in ns; `cpu`, `current_pid` and `current_comm` say where an event happened, the other columns are the
    fields by the names that the kernel prints.
    """

    def __init__(self, file: AnyPath) -> None:
        self.file = os.fspath(file)
        self._columns, self.notes = _schedlab.read_trace(self.file)

    def rows(self) -> Columns:
        """The events as columns."""
        return self._columns

    def __len__(self) -> int:
        return self._columns.num_rows

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The events as an Arrow C stream."""
        return self._columns.__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        notes = "".join(f"; {note}" for note in self.notes)
        return f"{len(self)} events: {', '.join(self._columns.column_names)}{notes}"

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} events>"


class Audit(_Texts):
    """Each decision of a recorded kernel, judged by the rules of a kernel here.

    `file` is a recording, or the folder of one; kernel, machine and facts are given where it does not say them.
    """

    def __init__(
        self,
        file: AnyPath,
        *,
        kernel: Optional[Union[str, Kernel]] = None,
        machine: Optional[Union[str, Machine]] = None,
        facts: Optional[AnyPath] = None,
        affinity: Optional[list[str]] = None,
        verdicts: bool = False,
    ) -> None:
        if isinstance(machine, Machine):
            machine = machine.name
        options = _options(kernel=kernel, machine=machine, facts=facts, affinity=affinity, verdicts=verdicts)
        self._arguments = ["audit", os.fspath(file), *options]
        self._data = _json(*self._arguments)

    @property
    def data(self) -> Any:
        """All of it, as `schedlab audit --format json` has it."""
        return self._data

    def __str__(self) -> str:
        return command(*self._arguments)

    def __repr__(self) -> str:
        return f"<Audit {' '.join(self._arguments[1:])}>"


class Replay(_Texts):
    """What was recorded, run on another machine or kernel, and how well the replay fits where it was recorded."""

    def __init__(
        self,
        file: AnyPath,
        *,
        machine: Optional[Union[str, Machine]] = None,
        kernel: Optional[Union[str, Kernel]] = None,
        vs: Optional[list[str]] = None,
        facts: Optional[AnyPath] = None,
        as_recorded: Optional[str] = None,
        recorded_on: Optional[str] = None,
        affinity: Optional[list[str]] = None,
        runs: Optional[int] = None,
        seed: Optional[int] = None,
        without: Optional[str] = None,
        threads: int = 0,
    ) -> None:
        if isinstance(machine, Machine):
            machine = machine.name
        options = _options(
            machine=machine,
            kernel=kernel,
            vs=vs,
            facts=facts,
            as_recorded=as_recorded,
            recorded_on=recorded_on,
            affinity=affinity,
            runs=runs,
            seed=seed,
            without=without,
            threads=threads,
        )
        self._arguments = ["replay", os.fspath(file), *options]
        self._data = _json(*self._arguments)

    @property
    def data(self) -> Any:
        """All of it, as `schedlab replay --format json` has it."""
        return self._data

    def __str__(self) -> str:
        return command(*self._arguments)

    def __repr__(self) -> str:
        return f"<Replay {' '.join(self._arguments[1:])}>"


def detect(file: AnyPath, **options: Any) -> Any:
    """What is wrong in a recording, as data. Options are those of `schedlab detect`: `machine`, `facts`, `kernel`,
    `affinity`, `most`."""
    return _json("detect", file, *_options(**options))


def explain(name: str) -> Any:
    """What a rule, a reason, a kernel, a row of an audit or a detector is, as data."""
    return _json("explain", name)


def reproduce(*tables: str, quick: bool = False, runs: Optional[int] = None, threads: int = 0) -> Any:
    """Published tables beside simulated ones: a dict for each cell."""
    return _json("reproduce", *tables, *_options(quick=quick, runs=runs, threads=threads))


def _flat(*comparisons: Any) -> dict[str, list[Any]]:
    """Comparisons as columns, one below the other."""
    lines = []
    for metric in (metric for comparison in comparisons if comparison for metric in comparison["metrics"]):
        for row in metric["rows"]:
            for cell in row["cells"]:
                paired = cell["paired"] or {}
                low, high = paired.get("interval_percent") or (None, None)
                line = {"metric": metric["name"], "unit": metric["unit"], "better": metric["better"]}
                line |= {"row": row["row"], "kernel": cell["kernel"], "samples": cell["samples"]}
                line |= cell["stats"]
                line |= {"significant": int(cell["significant"]), "p": cell["p"]}
                line |= {"change_percent": paired.get("change_percent"), "low_percent": low, "high_percent": high}
                line |= {"verdict": paired.get("verdict")}
                lines.append(line)
    names = list(dict.fromkeys(name for line in lines for name in line))
    return {name: [line.get(name) for line in lines] for name in names}
