//! Any machine that is written can be read back as it was.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use schedlab_topology::{Cpu, CpuId, SavedSysfs, Topology};

fn divisor(n: usize) -> impl Strategy<Value = usize> {
    select((1..=n).filter(|d| n.is_multiple_of(*d)).collect::<Vec<_>>())
}

/// A machine of up to some hundred CPUs with everything a description can have.
fn machine() -> impl Strategy<Value = Topology> {
    (1..=4usize, 1..=4usize, 1..=6usize, 1..=8usize)
        .prop_flat_map(|(sockets, llcs, cores, threads)| {
            let paired = if sockets * llcs * cores % 2 == 0 { "paired" } else { "adjacent" };
            (
                Just((sockets, llcs, cores, threads)),
                select(vec!["adjacent", "interleaved", paired]),
                select(vec!["adjacent", "interleaved"]),
                select(vec!["socket", "llc"]),
                (divisor(llcs), divisor(llcs), divisor(cores)),
                prop::collection::vec(11..=254u32, 256),
                (select(vec!["", ",l2=1M", ",l2=1280K"]), select(vec!["", ",llc=32M", ",llc=4000"])),
            )
        })
        .prop_map(|(shape, smt, sockets, packages, (nodes, dies, cluster), distances, (l2, llc))| {
            let (a, b, c, d) = shape;
            let nr_nodes = a * nodes;
            let row = |i: usize| -> String {
                let distance = |j: usize| if i == j { 10 } else { distances[i * 16 + j] };
                (0..nr_nodes).map(|j| distance(j).to_string()).collect::<Vec<_>>().join("/")
            };
            let table = (0..nr_nodes).map(row).collect::<Vec<_>>().join(":");
            Topology::regular(&format!(
                "{a}x{b}x{c}x{d}:smt={smt},sockets={sockets},packages={packages},nodes={nodes}/socket,\
                 dies={dies},cluster={cluster},distance={table}{l2}{llc}"
            ))
            .unwrap()
        })
}

/// The same machine with its CPUs numbered at random, some of them smaller and some offline.
fn odd_machine() -> impl Strategy<Value = Topology> {
    (machine(), prop::collection::vec(any::<Index>(), 0..8), any::<u64>(), 1..1024u16)
        .prop_flat_map(|(machine, offline, smaller, capacity)| {
            let order: Vec<CpuId> = machine.cpus().map(|(id, _)| id).collect();
            (Just((machine, offline, smaller, capacity)), Just(order).prop_shuffle())
        })
        .prop_map(|((machine, offline, smaller, capacity), order)| {
            let mut cpus: Vec<Cpu> = order.iter().map(|&id| *machine.cpu(id)).collect();
            let sizes: Vec<_> = order.iter().map(|&id| machine.cache_sizes(id)).collect();
            let offline: Vec<usize> = offline.iter().map(|index| index.index(cpus.len())).collect();
            for (i, cpu) in cpus.iter_mut().enumerate() {
                cpu.online = i == 0 || !offline.contains(&i);
                if i > 0 && smaller >> (i % 64) & 1 == 1 {
                    cpu.capacity = capacity;
                }
            }
            let made = Topology::new("m", cpus, machine.distances().to_vec()).unwrap();
            made.with_cache_sizes(|cpu| sizes[cpu.index()]).unwrap()
        })
}

/// The machine without what a format cannot express, by a change to each CPU.
fn reduced(machine: &Topology, change: impl Fn(&Cpu) -> Cpu, distances: Vec<Vec<u32>>) -> Topology {
    let cpus = machine.cpus().map(|(_, cpu)| change(cpu)).collect();
    let made = Topology::new("m", cpus, distances).unwrap();
    made.with_cache_sizes(|cpu| machine.cache_sizes(cpu)).unwrap()
}

proptest! {
    #[test]
    fn sysfs_is_read_as_it_was_written(machine in odd_machine()) {
        let saved = machine.to_sysfs();
        prop_assert_eq!(&Topology::from_sysfs("m", &saved).unwrap(), &machine);
        prop_assert_eq!(&SavedSysfs::from_lines("m", &saved.to_lines()).unwrap(), &saved);
        let mut tar = Vec::new();
        saved.to_tar(&mut tar).unwrap();
        prop_assert_eq!(&SavedSysfs::from_tar("m", &tar).unwrap(), &saved);
    }

    /// lscpu has no dies, distances, sizes or capacities.
    #[test]
    fn lscpu_is_read_as_it_was_written(machine in odd_machine()) {
        let nr_nodes = machine.nr_nodes();
        let distance = |a, b| if a == b { 10 } else { 20 };
        let distances = (0..nr_nodes).map(|a| (0..nr_nodes).map(|b| distance(a, b)).collect()).collect();
        let known = reduced(&machine, |cpu| Cpu { die: cpu.package, capacity: 1024, ..*cpu }, distances);
        let read = Topology::from_lscpu("m", &machine.to_lscpu()).unwrap();
        prop_assert_eq!(read, known.with_cache_sizes(|_| Default::default()).unwrap());
    }

    /// hwloc has no positions of CPUs whose whole core is offline, and no capacities of offline CPUs.
    #[test]
    fn hwloc_is_read_as_it_was_written(machine in odd_machine()) {
        let first_threads_online = |cpu: &Cpu| {
            let online = cpu.online || cpu.thread == 0;
            Cpu { online, capacity: if online { cpu.capacity } else { 1024 }, ..*cpu }
        };
        let known = reduced(&machine, first_threads_online, machine.distances().to_vec());
        match known.to_hwloc() {
            Ok(xml) => prop_assert_eq!(Topology::from_hwloc("m", &xml).unwrap(), known),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn every_machine_can_be_drawn(machine in odd_machine()) {
        let drawing = machine.draw();
        prop_assert!(drawing.starts_with("m: "));
        prop_assert_eq!(drawing.contains("offline: "), machine.online().weight() < machine.nr_cpus());
    }

    #[test]
    fn a_damaged_file_is_read_or_refused(
        machine in odd_machine(),
        damage in prop::collection::vec((any::<Index>(), select(vec!["", "0", "9", "-", ",", "x", "\n", "4095", "\""])), 1..6),
    ) {
        let damaged = |mut text: String| {
            for (at, with) in &damage {
                let at = at.index(text.len());
                text.replace_range(at..at + 1, with);
            }
            text
        };
        let _ = Topology::from_lscpu("m", &damaged(machine.to_lscpu()));
        let _ = Topology::from_hwloc("m", &damaged(machine.to_hwloc().unwrap_or("<topology/>".to_string())));
        if let Ok(saved) = SavedSysfs::from_lines("m", &damaged(machine.to_sysfs().to_lines())) {
            let _ = Topology::from_sysfs("m", &saved);
        }
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "[\\PC\n]{0,200}", options in "[0-9x:=,/a-z-]{0,40}") {
        let _ = Topology::regular(&options);
        let _ = Topology::from_toml("m", &text);
        let _ = Topology::from_lscpu("m", &text);
        let _ = Topology::from_hwloc("m", &text);
        let _ = SavedSysfs::from_lines("m", &text);
        let _ = SavedSysfs::from_tar("m", text.as_bytes());
    }
}
