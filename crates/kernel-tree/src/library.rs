//! A built library, from which kernels are booted.

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use schedlab_topology::{NodeId, Topology};

use crate::fault::LIBRARY;
use crate::{Built, Error, Kernel, raw, trap};

/// A library that can be booted any number of times.
#[derive(Clone, Debug)]
pub struct Library {
    file: PathBuf,
}

impl Library {
    /// A name of its content: two libraries of equal sources have the same.
    pub fn key(&self) -> String {
        let folder = self.file.parent().and_then(std::path::Path::file_name).unwrap_or_default();
        folder.to_string_lossy().into_owned()
    }

    /// Takes the result of [`crate::Cache::build`].
    ///
    /// # Errors
    /// The library's file does not exist.
    pub fn load(built: &Built) -> Result<Library, Error> {
        std::fs::metadata(&built.library).map_err(|error| Error::io("read it", &built.library, &error))?;
        Ok(Library { file: built.library.clone() })
    }

    /// Boots a kernel on a machine, with state of its own: at 1 ns, every CPU idle.
    ///
    /// # Errors
    /// The machine is too large. A kernel that cannot boot raises a [`crate::Fault`].
    pub fn boot(&self, machine: &Topology) -> Result<Kernel, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let copy = std::env::temp_dir().join(format!("{LIBRARY}{}-{number}.so", std::process::id()));
        trap::catch();
        let raw = raw::private_copy(&self.file, &copy)?;
        let of = |f: &dyn Fn(&schedlab_topology::Cpu) -> usize| -> Vec<c_int> {
            machine.cpus().map(|(_, cpu)| f(cpu) as c_int).collect()
        };
        let levels = [
            of(&|cpu| cpu.core as usize),
            of(&|cpu| cpu.cluster as usize),
            of(&|cpu| cpu.llc as usize),
            of(&|cpu| cpu.package as usize),
            of(&|cpu| usize::from(cpu.node.0)),
            of(&|cpu| cpu.capacity as usize),
        ];
        let nodes = machine.nr_nodes();
        let pairs = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
        let node = |n: usize| NodeId(n.try_into().expect("nodes are few"));
        let distance: Vec<c_int> = pairs.map(|(a, b)| machine.distance(node(a), node(b)) as c_int).collect();
        raw.lab_now(1);
        raw.boot(&levels, nodes, &distance, machine.reclaim_distance())?;
        Ok(Kernel::new(raw, machine.nr_cpus()))
    }
}
