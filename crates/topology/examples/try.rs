//! scratch
use schedlab_topology::*;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = match a[1].as_str() {
        "host" => {
            let root = std::path::PathBuf::from(&a[2]);
            Topology::from_sysfs("host", &move |p: &str| {
                std::fs::read_to_string(root.join(p.trim_start_matches('/'))).ok()
            })
        }
        "tar" => SavedSysfs::from_tar(&a[2], &std::fs::read(&a[2]).unwrap())
            .and_then(|s| Topology::from_sysfs("tar", &s)),
        other => Topology::preset_or_regular(other),
    };
    let t = match t {
        Ok(t) => t,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(2)
        }
    };
    let s = Instant::now();
    let f = t.to_sysfs();
    eprintln!("export {:?}", s.elapsed());
    let s = Instant::now();
    let u = Topology::from_sysfs("x", &f).unwrap();
    eprintln!("import {:?} same {}", s.elapsed(), u == t.clone().named("x").with_reclaim_distance(30));
    let s = Instant::now();
    if let Ok(t) = Topology::preset_or_regular(&a[1]) {
        eprintln!("build {:?} {}", s.elapsed(), t.nr_cpus());
    }
    if a[a.len() - 1].ends_with(".tar") && a[1] != "tar" {
        f.to_tar(std::fs::File::create(&a[a.len() - 1]).unwrap()).unwrap();
    }
    println!(
        "{} cores {} llcs {} nodes {} pkgs",
        t.cores().len(),
        t.llcs().len(),
        t.nr_nodes(),
        t.packages().len()
    );
}
