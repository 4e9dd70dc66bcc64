//! Plans and stores of sweeps.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use schedlab_sweep::{Axis, Cache, Draft, Plan, ReportOptions, RunOptions, Sample, Shard, Store};

use crate::call::interruptible;
use crate::columns::Columns;
use crate::error;

/// A plan: everything that defines its points.
#[pyclass(frozen, module = "schedlab._schedlab")]
pub struct SweepPlan(Plan);

/// Reads the files that a scenario names from its folder.
struct Folder(PathBuf);

impl schedlab::Files for Folder {
    fn text(&self, name: &str) -> Result<String, String> {
        let path = self.0.join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

#[pymethods]
impl SweepPlan {
    /// A plan from the text of a scenario and axes as (path, values).
    #[new]
    #[pyo3(signature = (file, text, folder, axes, sample, seeds=None, seed=None, chunk=None))]
    fn new(
        file: String,
        text: String,
        folder: PathBuf,
        axes: Vec<(String, String)>,
        sample: &str,
        seeds: Option<u32>,
        seed: Option<u64>,
        chunk: Option<u32>,
    ) -> PyResult<SweepPlan> {
        let axes = axes
            .iter()
            .map(|(path, values)| Axis::of(path, values))
            .collect::<Result<_, _>>()
            .map_err(error)?;
        let sample = Sample::parse(sample).map_err(error)?;
        let draft = Draft { file, text, axes, sample, seeds, seed, chunk };
        Plan::new(draft, &Folder(folder)).map(SweepPlan).map_err(error)
    }

    /// A plan from the text that `to_toml` returned.
    #[staticmethod]
    fn from_toml(text: &str) -> PyResult<SweepPlan> {
        Plan::from_toml("plan.toml", text).map(SweepPlan).map_err(error)
    }

    /// The plan as text, which is all that is needed to run its points.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// How many points there are.
    #[getter]
    fn points(&self) -> u64 {
        self.0.points()
    }

    /// How many chunks there are.
    #[getter]
    fn chunks(&self) -> u64 {
        self.0.chunks()
    }

    /// What a point sets, in one line.
    fn point(&self, index: u64) -> PyResult<String> {
        if index >= self.0.points() {
            return Err(error(format!("there is no point {index}; the plan has {}", self.0.points())));
        }
        Ok(self.0.point(index).to_string())
    }

    /// Runs a chunk: the bytes of its file, and how many points failed.
    fn run_chunk<'py>(&self, py: Python<'py>, chunk: u64) -> PyResult<(Bound<'py, PyBytes>, usize)> {
        let plan = self.0.clone();
        let (bytes, failed) =
            interruptible(py, move || schedlab_sweep::run_chunk(&plan, chunk))?.map_err(error)?;
        Ok((PyBytes::new(py, &bytes), failed))
    }
}

/// The folder of a sweep.
#[pyclass(frozen, module = "schedlab._schedlab")]
pub struct SweepStore(Store);

#[pymethods]
impl SweepStore {
    /// Opens a folder, or creates it with a plan.
    #[new]
    #[pyo3(signature = (folder, plan=None))]
    fn new(folder: PathBuf, plan: Option<&SweepPlan>) -> PyResult<SweepStore> {
        match plan {
            Some(plan) => Store::create(&folder, plan.0.clone()),
            None => Store::open(&folder),
        }
        .map(SweepStore)
        .map_err(error)
    }

    /// Its plan.
    #[getter]
    fn plan(&self) -> SweepPlan {
        SweepPlan(self.0.plan().clone())
    }

    /// Unfinished chunks; with `retry` also those with failed points.
    #[pyo3(signature = (retry=false))]
    fn missing(&self, retry: bool) -> PyResult<Vec<u64>> {
        self.0.check_engine().map_err(error)?;
        let is_missing = |chunk: &u64| self.0.is_done(*chunk).is_none_or(|failed| retry && failed > 0);
        Ok((0..self.0.plan().chunks()).filter(is_missing).collect())
    }

    /// Writes the bytes of a finished chunk to its file.
    fn put(&self, chunk: u64, bytes: &[u8]) -> PyResult<()> {
        self.0.put(chunk, bytes).map_err(error)
    }

    /// Points, points done, points failed.
    fn status(&self) -> (u64, u64, u64) {
        let status = self.0.status();
        (status.points, status.done, status.failed)
    }

    /// Failed points: what each sets, and the error.
    fn failures(&self, most: usize) -> PyResult<Vec<(String, String)>> {
        let found = self.0.failures(most).map_err(error)?;
        Ok(found.into_iter().map(|(index, wrong)| (self.0.plan().point(index).to_string(), wrong)).collect())
    }

    /// Runs what is missing on this machine's cores: points done, points failed. Ctrl-C keeps finished
    /// points.
    #[pyo3(signature = (threads=0, retry=false, cache=None, cache_limit=1 << 30, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        threads: usize,
        retry: bool,
        cache: Option<PathBuf>,
        cache_limit: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(u64, u64)> {
        let store = self.0.clone();
        let cache = cache.map(|folder| Cache::new(&folder, cache_limit));
        let options = RunOptions { threads, shard: Shard::ALL, retry, cache };
        let mut signal = None;
        let summary = py.detach(|| {
            schedlab_sweep::run(&store, options, &mut |at| {
                if signal.is_none() {
                    let heard = Python::attach(|py| {
                        py.check_signals()?;
                        progress.as_ref().map_or(Ok(()), |tell| tell.call1(py, (at.done, at.total)).map(drop))
                    });
                    signal = heard.err();
                }
                signal.is_none()
            })
        });
        let summary = summary.map_err(error)?;
        signal.map_or(Ok((summary.done, summary.failed)), Err)
    }

    /// All finished rows, in the order of the points.
    fn rows(&self) -> PyResult<Columns> {
        let mut tables = Vec::new();
        let each = self.0.each(|table| {
            tables.push(table);
            Ok(())
        });
        each.map_err(error)?;
        Columns::of(&self.0.columns(), tables)
    }

    /// A report as text and as JSON.
    #[pyo3(signature = (metric=None, against=None, most=5))]
    fn report(
        &self,
        metric: Option<String>,
        against: Option<String>,
        most: usize,
    ) -> PyResult<(String, String)> {
        let report = schedlab_sweep::report(&self.0, &ReportOptions { metric, against }).map_err(error)?;
        let json = serde_json::to_string(&report).map_err(error)?;
        Ok((report.text(most), json))
    }
}
