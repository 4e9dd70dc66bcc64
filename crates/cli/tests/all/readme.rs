//! What README.md shows of the main job is what the main job prints.

use std::process::Command;

#[test]
fn the_main_job_prints_what_the_readme_shows() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let readme = std::fs::read_to_string(format!("{root}/README.md")).unwrap();
    let printed = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["compare", "scenarios/stream-pinned-numa.toml"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(printed.status.success());
    let printed = String::from_utf8(printed.stdout).unwrap();
    let (shown, _) = printed
        .split_once("\n\nv5.18+NUMA_IMB_AFFINITY against v5.18: 10 pairs by seed, 95 % intervals\n")
        .unwrap();
    assert!(readme.contains(shown), "README.md is to show\n{shown}");
}
