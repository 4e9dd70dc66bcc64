"""Search of tunables and switches: what beats the default here?

The search is Optuna's, by ask and tell: batches of candidates become one sweep, so they run on any executor, are
paired by seed with the default, and are found in the cache when the search is resumed. The default is in every batch.
What the search likes best is run again on seeds that it has not seen; only that decides.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from concurrent import futures
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Optional, Union

from schedlab import _schedlab
from schedlab._lab import Kernel, Scenario
from schedlab._schedlab import Error
from schedlab.sweep import Sweep, dask_executor, ray_executor

__all__ = ["Answer", "Finalist", "Goal", "Parameter", "tune"]

#: Chance that any finalist is said to be better or worse somewhere and is not.
ERROR_RATE = 0.05
#: Candidates of a batch.
BATCH = 8


@dataclass
class Parameter:
    """A tunable, switch or rule of the kernel, and what it can be."""

    name: str
    default: Union[int, str]
    #: The forms of a switch or rule, or the least and greatest value of a number.
    choices: Union[list[str], tuple[int, int]]

    @classmethod
    def read(cls, text: str, kernel: Kernel) -> Parameter:
        """Reads `SIS_UTIL`, `SIS_UTIL=on,off` or `base_slice_ns=100000..10000000`.

        A number without a range may be an eighth to eight times its default, as far as the kernel has it.
        """
        name, _, given = text.partition("=")
        name = name.strip()
        entry = next((e for e in kernel._rules["entries"] if e["name"].lower() == name.lower()), None)
        if entry is None:
            raise Error(f'there is no rule or number "{name}"; `schedlab features` lists all')
        name, value = entry["name"], entry["value"]
        if entry["kind"] != "tunable":
            forms = [form.strip() for form in given.split(",")] if given else list(entry["forms"])
            unknown = [form for form in forms if form not in entry["forms"]]
            if unknown:
                longer = [e["name"] for e in kernel._rules["entries"] if e["name"].rpartition("_")[0] == name.lower()]
                meant = f"; did you mean {longer[0]}?" if longer else ""
                raise Error(f"{name} is one of {', '.join(entry['forms'])}, not \"{unknown[0]}\"{meant}")
            return cls(name, value, list(dict.fromkeys([value, *forms])))
        default = int(value)
        if given:
            low, dots, high = given.partition("..")
            try:
                bounds = (int(low), int(high)) if dots else None
            except ValueError:
                bounds = None
            if bounds is None or bounds[0] > bounds[1]:
                raise Error(f'{name} needs a range of whole numbers, as {name}=100000..10000000, not "{given}"')
            for bound in bounds:
                kernel.with_(f"{name}={bound}")
            return cls(name, default, (min(bounds[0], default), max(bounds[1], default)))
        low_bound, high_bound = default, default
        for factor in (8, 4, 2):
            for bound in (default // factor, default * factor):
                try:
                    kernel.with_(f"{name}={bound}")
                except Error:
                    continue
                low_bound, high_bound = min(low_bound, bound), max(high_bound, bound)
        return cls(name, default, (low_bound, high_bound))

    def part(self, value: Union[int, str]) -> Optional[str]:
        """Its part of a kernel string; none for the default."""
        if value == self.default:
            return None
        return {"on": self.name, "off": f"NO_{self.name}"}.get(str(value), f"{self.name}={value}")


@dataclass
class Goal:
    """A figure of a scenario that is to become better."""

    scenario: str
    metric: Optional[str] = None
    unit: str = ""
    lower_is_better: bool = True

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{Path(self.scenario).stem}: {self.metric}"


@dataclass
class Finalist:
    """A kernel that was run on fresh seeds."""

    kernel: str
    #: For each goal the change against the default in percent, with its interval; better is positive.
    gains: list[tuple[float, float, float]]
    beats_default: bool = False
    #: Whether no other finalist that beats the default is better in every goal.
    is_best: bool = False


@dataclass
class Answer:
    """What a search came to."""

    default: str
    goals: list[Goal]
    trials: int
    finalists: list[Finalist] = field(default_factory=list)

    @property
    def best(self) -> list[Finalist]:
        """The Pareto set; empty if nothing beats the default."""
        return [finalist for finalist in self.finalists if finalist.is_best]

    def __str__(self) -> str:
        lines = [f"{self.trials} candidates against {self.default}; finalists again, on fresh seeds"]
        width = max([len(finalist.kernel) for finalist in self.finalists] + [6])
        heads = "  ".join(f"{goal.name:<28}" for goal in self.goals)
        lines.append(f"{'kernel':<{width}}  {heads}")
        for finalist in self.finalists:
            cells = "  ".join(f"{f'{g:+.1f} % [{low:+.1f}, {high:+.1f}]':<28}" for g, low, high in finalist.gains)
            word = "best" if finalist.is_best else "better" if finalist.beats_default else ""
            lines.append(f"{finalist.kernel:<{width}}  {cells}  {word}".rstrip())
        if not self.best:
            lines.append("nothing beats the default")
        lines.append(
            f"Better is positive. Intervals hold for all of them together; error rate {ERROR_RATE:.0%}."
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def tune(
    scenarios: Sequence[str],
    parameters: Sequence[str],
    *,
    kernel: str,
    folder: Union[str, "os.PathLike[str]"],
    metrics: Sequence[Optional[str]] = (),
    machine: Optional[str] = None,
    trials: int = 64,
    seeds: int = 4,
    final_seeds: int = 16,
    finalists: int = 4,
    seed: int = 1,
    executor: Optional[futures.Executor] = None,
    threads: int = 0,
    progress: Optional[Callable[[int, int], object]] = None,
) -> Answer:
    """Searches `trials` candidates for what beats `kernel` in scenarios, and judges the best on fresh seeds.

    `parameters` are tunables, switches and rules, as `base_slice_ns=100000..10000000` or `SIS_UTIL`. `metrics` names a
    figure for each scenario; its first measure if not given. All that is known lies in `folder`: called again with
    the same arguments, the search goes on where it stopped.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    base = Kernel(kernel)
    space = [Parameter.read(text, base) for text in parameters]
    if not space:
        raise Error("name at least one parameter, as base_slice_ns or SIS_UTIL")
    goals = [Goal(file, metric) for file, metric in zip(scenarios, [*metrics, *[None] * len(scenarios)])]
    if not goals:
        raise Error("name at least one scenario")
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    asked = {"scenarios": list(scenarios), "metrics": list(metrics), "kernel": kernel, "machine": machine}
    asked |= {"parameters": list(parameters), "seeds": seeds, "seed": seed, "engine": _schedlab.engine}
    asked |= {"texts": [Scenario(file).text for file in scenarios]}
    _same_search(root / "search.json", asked)

    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(str(root / "optuna.journal")))
    study = optuna.create_study(
        study_name="schedlab",
        directions=["minimize"] * len(goals),
        storage=storage,
        load_if_exists=True,
        # A resumed sampler must not repeat its earlier samples.
        sampler=None,
    )
    finished = [trial for trial in study.trials if trial.state.is_finished()]
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(finished), multivariate=True)
    for left in study.trials:
        # Left by an interrupted search; their points are in the cache.
        if left.state == optuna.trial.TrialState.RUNNING:
            study.tell(left.number, state=optuna.trial.TrialState.FAIL)
    if not study.trials:
        study.enqueue_trial({parameter.name: parameter.default for parameter in space})
    distributions: dict[str, Any] = {}
    for parameter in space:
        if isinstance(parameter.choices, tuple):
            low, high = parameter.choices
            distributions[parameter.name] = optuna.distributions.IntDistribution(max(low, 1), max(high, 1), log=True)
        else:
            distributions[parameter.name] = optuna.distributions.CategoricalDistribution(parameter.choices)

    def measured(kernels: list[str], name: str, count: int, plan_seed: int) -> dict[str, list[list[float]]]:
        """For each kernel and goal the gain against the default by seed, as a natural logarithm."""
        gains: dict[str, list[list[float]]] = {one: [] for one in kernels}
        for nth, goal in enumerate(goals):
            vary: dict[str, Any] = {"kernel": list(dict.fromkeys([kernel, *kernels]))}
            if machine is not None:
                vary["machine"] = [machine]
            sweep = Sweep(
                goal.scenario, vary, seeds=count, seed=plan_seed, folder=root / f"{name}-{nth}", chunk=max(1, count)
            )
            if sweep.run(executor, threads=threads, cache=root / "cache"):
                point, wrong = sweep.failures[0]
                raise Error(f"{goal.scenario}: {point}: {wrong}")
            _fill(goal, sweep)
            for one, values in _gains(sweep, goal, kernel).items():
                if one in gains:
                    gains[one].append(values)
        return gains

    batch = 0
    while True:
        done = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
        if progress is not None:
            progress(len(done), trials)
        if len(done) >= trials:
            break
        asked_trials = [study.ask(distributions) for _ in range(min(BATCH, trials - len(done)))]
        kernels = [_kernel(kernel, space, trial.params) for trial in asked_trials]
        name = f"batch-{len(study.trials):05}-{batch}"
        gains = measured(kernels, name, seeds, seed)
        for trial, one in zip(asked_trials, kernels):
            study.tell(trial, [-sum(values) / len(values) for values in gains[one]])
        batch += 1

    likely: list[str] = []
    for best in sorted(study.best_trials, key=lambda best: (sum(best.values), best.number)):
        one = _kernel(kernel, space, best.params)
        if one != kernel and one not in likely:
            likely.append(one)
    answer = Answer(kernel, goals, len(study.trials))
    likely = likely[:finalists]
    if likely:
        # Another seed of the plan: every run has a seed that the search has not used.
        fresh = measured(likely, f"final-{len(study.trials):05}-{final_seeds}", final_seeds, seed + 1_000_003)
        rate = ERROR_RATE / (len(likely) * len(goals))
        for one in likely:
            intervals = [_schedlab.mean_interval(values, 1 - rate) for values in fresh[one]]
            percent = [tuple(100 * math.expm1(bound) for bound in interval) for interval in intervals]
            better = any(low > 0 for _, low, _ in percent) and not any(high < 0 for _, _, high in percent)
            answer.finalists.append(Finalist(one, [(g, low, high) for g, low, high in percent], better))
    winners = [finalist for finalist in answer.finalists if finalist.beats_default]
    for finalist in winners:
        mine = [gain for gain, _, _ in finalist.gains]
        others = [[gain for gain, _, _ in other.gains] for other in winners if other is not finalist]
        finalist.is_best = not any(
            all(o >= m for o, m in zip(other, mine)) and any(o > m for o, m in zip(other, mine)) for other in others
        )
    return answer


def _same_search(path: Path, asked: dict[str, Any]) -> None:
    """A folder holds one search."""
    text = json.dumps(asked, indent=1)
    if path.exists():
        if path.read_text() != text:
            raise Error(f"{path.parent}: this folder has another search; give another folder, or the same arguments")
        return
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(text)
    beside.replace(path)


def _kernel(base: str, space: list[Parameter], values: dict[str, Any]) -> str:
    parts = (parameter.part(values[parameter.name]) for parameter in space)
    return "+".join([base, *(part for part in parts if part)])


def _fill(goal: Goal, sweep: Sweep) -> None:
    report = sweep.report_json(goal.metric)
    goal.metric, goal.unit = report["metric"], report["unit"]
    goal.lower_is_better = report["lower_is_better"]


def _gains(sweep: Sweep, goal: Goal, base: str) -> dict[str, list[float]]:
    """By kernel, the gain against the base by seed, in the mean over the rows of the scenario."""
    rows = sweep.rows()
    assert goal.metric is not None
    keys = rows.column("row") if "row" in rows.column_names else [""] * len(rows)
    values: dict[str, dict[tuple[int, str], float]] = {}
    for kernel, repeat, key, value in zip(rows.column("kernel"), rows.column("repeat"), keys, rows.column(goal.metric)):
        if value is None or value <= 0:
            raise Error(f"{goal.name} is {value} under {kernel}; only figures above 0 can be tuned")
        values.setdefault(kernel, {})[repeat, key] = math.log(value)
    sign = -1 if goal.lower_is_better else 1
    gains = {}
    for kernel, of in values.items():
        by_seed: dict[int, list[float]] = {}
        for (repeat, key), value in of.items():
            by_seed.setdefault(repeat, []).append(sign * (value - values[base][repeat, key]))
        gains[kernel] = [sum(each) / len(each) for _, each in sorted(by_seed.items())]
    return gains


def _executor(text: str) -> Optional[futures.Executor]:
    kind, _, address = text.partition(":")
    if kind == "local":
        return None
    if kind == "ray":
        import ray

        ray.init(address=address or None)
        return ray_executor()
    if kind == "dask":
        import distributed

        # Its types depend on whether it is installed, which is optional.
        connect: Any = distributed.Client
        return dask_executor(connect(address or None))
    raise Error(f'--executor is local, ray[:ADDRESS] or dask[:ADDRESS], not "{text}"')


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The command `schedlab tune`."""
    parser = argparse.ArgumentParser(
        prog="schedlab tune",
        description="Search for tunables and switches that beat the default, and judge the best on fresh seeds.",
        epilog="Example: schedlab tune scenarios/sis-util.toml --kernel v6.12 --param base_slice_ns --param SIS_UTIL "
        "--output tuned",
    )
    parser.add_argument("scenario", nargs="+", help="scenarios; each is a goal of its own")
    parser.add_argument("--param", action="append", default=[], required=True, metavar="NAME[=VALUES]",
                        help="a tunable, switch or rule: base_slice_ns, base_slice_ns=100000..10000000, SIS_UTIL")
    parser.add_argument("--kernel", required=True, help="the default")
    parser.add_argument("--machine", help="run on this machine instead")
    parser.add_argument("--metric", action="append", default=[], help="figure of each scenario; its first if not given")
    parser.add_argument("--trials", type=int, default=64, help="candidates (default 64)")
    parser.add_argument("--seeds", type=int, default=4, help="paired seeds of each (default 4)")
    parser.add_argument("--final-seeds", type=int, default=16, help="fresh seeds of the finalists (default 16)")
    parser.add_argument("--finalists", type=int, default=4, help="most finalists (default 4)")
    parser.add_argument("--seed", type=int, default=1, help="what all draws follow from (default 1)")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="where the search is kept; it goes on there")
    parser.add_argument("--executor", default="local", help="local, ray[:ADDRESS] or dask[:ADDRESS]")
    parser.add_argument("--threads", type=int, default=0, help="threads here; 0 is one per processor")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how to print")
    args = parser.parse_args(arguments)

    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {total} candidates", end="\n" if done >= total else "", file=sys.stderr)

    try:
        for name in ("trials", "seeds", "final_seeds", "finalists"):
            if getattr(args, name) < (2 if name == "final_seeds" else 1):
                raise Error(f"--{name.replace('_', '-')} is too small")
        answer = tune(
            args.scenario,
            args.param,
            kernel=args.kernel,
            folder=args.output,
            metrics=args.metric,
            machine=args.machine,
            trials=args.trials,
            seeds=args.seeds,
            final_seeds=args.final_seeds,
            finalists=args.finalists,
            seed=args.seed,
            executor=_executor(args.executor),
            threads=args.threads,
            progress=progress,
        )
    except ModuleNotFoundError as error:
        print(f"schedlab: tune needs {error.name}; run `pip install '.[tune]'` in the project's folder", file=sys.stderr)
        return 2
    except Error as error:
        print(f"schedlab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"schedlab: stopped; the same command goes on in {args.output}", file=sys.stderr)
        return 130
    if args.format == "json":
        print(json.dumps(asdict(answer), indent=2))
    else:
        print(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
