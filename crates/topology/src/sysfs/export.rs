//! The sysfs files of a machine, as its kernel would show them.
//!
//! A kernel does not show where offline CPUs are; these files do, so that nothing is lost.

use std::fmt::Write;

use crate::{CpuId, CpuMask, SavedSysfs, Topology, size};

impl Topology {
    /// Writes the files that [`Topology::from_sysfs`] reads. The reclaim distance has none.
    pub fn to_sysfs(&self) -> SavedSysfs {
        let mut files = SavedSysfs::new();
        let all = CpuMask::all(self.nr_cpus());
        files.insert("cpu/possible", &all.to_string());
        files.insert("cpu/present", &all.to_string());
        files.insert("cpu/online", &self.online().to_string());
        files.insert("cpu/modalias", &format!("cpu:type:{}:", self.architecture().name()));
        if !self.isolated().is_empty() {
            files.insert("cpu/isolated", &self.isolated().to_string());
        }
        let [cores, clusters, llcs, dies, packages] =
            [self.cores(), self.clusters(), self.llcs(), self.dies(), self.packages()].map(written);
        for (id, cpu) in self.cpus() {
            let dir = format!("cpu/cpu{id}/topology");
            let first = |mask: &CpuMask| mask.first().unwrap_or_default().to_string();
            files.insert(&format!("{dir}/physical_package_id"), &cpu.package.to_string());
            files.insert(&format!("{dir}/die_id"), &cpu.die.to_string());
            files.insert(&format!("{dir}/cluster_id"), &first(self.cluster_mask(id)));
            files.insert(&format!("{dir}/core_id"), &first(self.core_mask(id)));
            let groups = [
                ("core_cpus", &cores[cpu.core as usize]),
                ("thread_siblings", &cores[cpu.core as usize]),
                ("cluster_cpus", &clusters[cpu.cluster as usize]),
                ("die_cpus", &dies[cpu.die as usize]),
                ("package_cpus", &packages[cpu.package as usize]),
                ("core_siblings", &packages[cpu.package as usize]),
            ];
            for (file, (list, mask)) in groups {
                files.insert(&format!("{dir}/{file}_list"), list);
                files.insert(&format!("{dir}/{file}"), mask);
            }
            let sizes = self.cache_sizes(id);
            let mut index = 0;
            let mut cache = |level: u32, group: u16, (list, mask): &(String, String), bytes: Option<u64>| {
                let dir = format!("cpu/cpu{id}/cache/index{index}");
                index += 1;
                files.insert(&format!("{dir}/level"), &level.to_string());
                files.insert(&format!("{dir}/type"), "Unified");
                files.insert(&format!("{dir}/id"), &group.to_string());
                files.insert(&format!("{dir}/shared_cpu_list"), list);
                files.insert(&format!("{dir}/shared_cpu_map"), mask);
                if let Some(bytes) = bytes {
                    files.insert(&format!("{dir}/size"), &kilobytes(bytes));
                }
            };
            if sizes.l2.is_some() {
                cache(2, cpu.cluster, &clusters[cpu.cluster as usize], sizes.l2);
            }
            cache(3, cpu.llc, &llcs[cpu.llc as usize], sizes.llc);
            files.insert(&format!("cpu/cpu{id}/cpu_capacity"), &cpu.capacity.to_string());
        }
        for (kind, groups) in [("book", self.books()), ("drawer", self.drawers())] {
            for (number, mask) in groups.iter().enumerate() {
                for cpu in mask.iter() {
                    let dir = format!("cpu/cpu{cpu}/topology");
                    files.insert(&format!("{dir}/{kind}_id"), &number.to_string());
                    files.insert(&format!("{dir}/{kind}_siblings_list"), &mask.to_string());
                }
            }
        }
        let nodes: Vec<usize> = (0..self.nr_nodes()).collect();
        let online = CpuMask::of(self.nr_nodes(), nodes.iter().map(|&node| CpuId::from(node)));
        files.insert("node/online", &online.to_string());
        for node in nodes {
            files.insert(&format!("node/node{node}/cpulist"), &self.nodes()[node].to_string());
            files.insert(&format!("node/node{node}/cpumap"), &self.nodes()[node].to_hex(""));
            let mut row = String::new();
            for distance in &self.distances()[node] {
                let _ = write!(row, "{}{distance}", if row.is_empty() { "" } else { " " });
            }
            files.insert(&format!("node/node{node}/distance"), &row);
        }
        files
    }
}

/// Each group as a list and as a mask; a kernel has files of both.
fn written(masks: &[CpuMask]) -> Vec<(String, String)> {
    masks.iter().map(|mask| (mask.to_string(), mask.to_hex(""))).collect()
}

/// A size as sysfs writes it, always in K; a size that is not a multiple is written in bytes.
fn kilobytes(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { format!("{}K", bytes / 1024) } else { size::format(bytes) }
}
