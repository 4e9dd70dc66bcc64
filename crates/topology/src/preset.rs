//! The built-in machines, by name.
//!
//! Each is a file in `machines/`, built in so that the program needs no data folder at run time.

use crate::nearest::nearest;
use crate::{Topology, TopologyError};

macro_rules! machines {
    ($($name:literal = $file:literal),* $(,)?) => {
        &[$(($name, concat!($file, ".toml"), include_str!(concat!("../../../machines/", $file, ".toml")))),*]
    };
}

/// Name, file in `machines/`, and the text of that file.
const PRESETS: &[(&str, &str, &str)] = machines! {
    "uma-8c" = "uma-8c",
    "numa-48c" = "numa-48c",
    "xeon-20c" = "xeon-20c",
    "spr-2s" = "spr-2s",
    "epyc-guest-380" = "epyc-guest-380",
    "epyc-guest-380-flat" = "epyc-guest-380-flat",
    "milan-2s" = "milan-2s",
    "zen3-2s" = "milan-2s",
    "icelake-2s" = "icelake-2s",
    "power10-40c" = "power10-40c",
    "power10-12c" = "power10-12c",
};

impl Topology {
    /// The machine of the given name.
    ///
    /// # Errors
    /// The name is not known; the error lists the known ones.
    pub fn preset(name: &str) -> Result<Topology, TopologyError> {
        let (file, text) = find(name)?;
        Ok(Topology::from_toml(file, text)?.named(name))
    }

    /// A preset's name, or a regular machine such as `2x8x8x2`.
    ///
    /// # Errors
    /// As of [`Topology::preset`], or of [`Topology::regular`] when the text begins with a digit.
    pub fn preset_or_regular(text: &str) -> Result<Topology, TopologyError> {
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            Topology::regular(text)
        } else {
            Topology::preset(text)
        }
    }
}

/// The names that [`Topology::preset`] knows.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _, _)| *name)
}

/// The file of a preset, for readers of its other tables.
///
/// # Errors
/// As of [`Topology::preset`].
pub fn preset_toml(name: &str) -> Result<&'static str, TopologyError> {
    Ok(find(name)?.1)
}

fn find(name: &str) -> Result<(&'static str, &'static str), TopologyError> {
    if let Some((_, file, text)) = PRESETS.iter().find(|(known, _, _)| *known == name) {
        return Ok((file, text));
    }
    let meant = nearest(name, preset_names()).map(|n| format!("did you mean \"{n}\"? ")).unwrap_or_default();
    let names: Vec<_> = preset_names().collect();
    Err(TopologyError::new(
        format!("there is no machine \"{name}\""),
        format!("{meant}there are {}, and regular ones such as 2x8x8x2", names.join(", ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuId, NodeId};

    #[test]
    fn every_preset_has_the_counts_of_its_machine() {
        // CPUs, threads, cores, LLCs, packages, nodes, CPUs of LLC 0
        let table: &[(&str, [usize; 6], &str)] = &[
            ("uma-8c", [8, 1, 8, 1, 1, 1], "0-7"),
            ("numa-48c", [48, 2, 24, 2, 2, 2], "0-11,24-35"),
            ("xeon-20c", [40, 2, 20, 2, 2, 2], "0-9,20-29"),
            ("spr-2s", [224, 2, 112, 2, 2, 2], "0-55,112-167"),
            ("epyc-guest-380", [380, 2, 190, 24, 2, 2], "0-15"),
            ("epyc-guest-380-flat", [380, 1, 380, 2, 2, 2], "0-189"),
            ("milan-2s", [256, 2, 128, 16, 2, 2], "0-7,128-135"),
            ("zen3-2s", [256, 2, 128, 16, 2, 2], "0-7,128-135"),
            ("icelake-2s", [128, 2, 64, 2, 2, 2], ""),
            ("power10-40c", [320, 4, 80, 80, 4, 4], "0,2,4,6"),
            ("power10-12c", [96, 4, 24, 24, 5, 5], "0,2,4,6"),
        ];
        let names: Vec<_> = table.iter().map(|row| row.0).collect();
        assert_eq!(preset_names().collect::<Vec<_>>(), names);
        for &(name, counts, llc0) in table {
            let t = Topology::preset(name).unwrap();
            let threads = t.cores()[0].weight();
            let found =
                [t.nr_cpus(), threads, t.cores().len(), t.llcs().len(), t.packages().len(), t.nr_nodes()];
            assert_eq!(found, counts, "{name}");
            if !llc0.is_empty() {
                assert_eq!(t.llcs()[0].to_string(), llc0, "{name}");
            }
            assert_eq!(t.name, name);
            assert_eq!(t.online().weight(), t.nr_cpus());
            let sizes = t.cache_sizes(CpuId(0));
            assert!(sizes.l2.is_some() && sizes.llc.is_some());
        }
    }

    #[test]
    fn every_llc_of_milan_holds_eight_cores() {
        let t = Topology::preset("zen3-2s").unwrap();
        for (llc, mask) in t.llcs().iter().enumerate() {
            let (first, second) = (8 * llc, 128 + 8 * llc);
            assert_eq!(mask.to_string(), format!("{first}-{},{second}-{}", first + 7, second + 7));
        }
        assert_eq!(t.node_mask(NodeId(1)).to_string(), "64-127,192-255");
        assert_eq!(t.distance(NodeId(0), NodeId(1)), 32);
    }

    #[test]
    fn ice_lake_has_even_cpus_on_one_node_and_odd_on_the_other() {
        let t = Topology::preset("icelake-2s").unwrap();
        assert!(t.cpus().all(|(id, cpu)| cpu.node.0 == id.0 % 2 && cpu.package == id.0 % 2));
        assert_eq!(t.core_mask(CpuId(5)).to_string(), "5,69");
    }

    #[test]
    fn the_guest_lacks_the_last_four_threads() {
        let t = Topology::preset("epyc-guest-380").unwrap();
        assert_eq!(t.llcs()[23].to_string(), "368-379");
        assert_eq!(t.node_mask(NodeId(1)).to_string(), "192-379");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let known = "there are uma-8c, numa-48c, xeon-20c, spr-2s, epyc-guest-380, epyc-guest-380-flat, milan-2s, \
                     zen3-2s, icelake-2s, power10-40c, power10-12c, and regular ones such as 2x8x8x2";
        let error = Topology::preset("zen-2s").unwrap_err().to_string();
        assert_eq!(error, format!("there is no machine \"zen-2s\"; did you mean \"zen3-2s\"? {known}"));
        let error = Topology::preset_or_regular("cray").unwrap_err().to_string();
        assert_eq!(error, format!("there is no machine \"cray\"; {known}"));
        assert_eq!(Topology::preset_or_regular("2x4").unwrap().nr_cpus(), 8);
    }
}
