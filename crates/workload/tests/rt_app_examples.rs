//! Each example file of rt-app itself is read, or refused by name with its line.

use std::fmt::Write as _;
use std::{fs, path::Path};

use expect_test::expect;
use schedlab_workload::RtApp;

/// All JSON files below a folder, in order of their names.
fn files(folder: &Path, found: &mut Vec<String>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "json") {
            found.push(path.to_str().unwrap().to_string());
        }
    }
}

#[test]
fn every_example_is_read_or_refused_by_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rt-app");
    let mut found = Vec::new();
    files(&folder, &mut found);
    let mut seen = String::new();
    for file in found {
        let short = file.strip_prefix(folder.to_str().unwrap()).unwrap().trim_start_matches('/');
        match RtApp::parse(&fs::read_to_string(&file).unwrap(), short) {
            Ok(RtApp { workload, notes }) => {
                let end = workload.duration.map_or("open".to_string(), |d| d.to_string());
                let (threads, ops) = (workload.tasks.len() - 1, workload.code.len());
                writeln!(seen, "{short}: {threads} threads, {ops} ops, {end}, {} notes", notes.len())
                    .unwrap();
            }
            Err(error) => writeln!(seen, "{error}").unwrap(),
        }
    }
    expect![[r#"
        browser-long.json: 9 threads, 185 ops, 600s, 5 notes
        browser-short.json: 9 threads, 185 ops, 6s, 5 notes
        cpufreq_governor_efficiency/calibration.json: 1 threads, 10 ops, open, 2 notes
        cpufreq_governor_efficiency/dvfs.json: 1 threads, 14 ops, open, 3 notes
        merge/global.json:1:1: "tasks": the file describes no tasks
        merge/resources.json:6:33: "target" is not modelled: it belongs to the grammar before rt-app 1.0; name the resource in an event
        merge/thread0.json:4:10: "exec" is not modelled: it belongs to the grammar before rt-app 1.0; describe the task by events
        merge/thread1.json:4:10: "exec" is not modelled: it belongs to the grammar before rt-app 1.0; describe the task by events
        merge/thread2.json:4:10: "exec" is not modelled: it belongs to the grammar before rt-app 1.0; describe the task by events
        merge/thread3.json:4:10: "exec" is not modelled: it belongs to the grammar before rt-app 1.0; describe the task by events
        mp3-long.json: 5 threads, 82 ops, 600s, 5 notes
        mp3-short.json: 5 threads, 82 ops, 6s, 5 notes
        spreading-tasks.json: 2 threads, 42 ops, 60s, 0 notes
        taskset.json:72:34: "target" is not modelled: it belongs to the grammar before rt-app 1.0; name the resource in an event
        template.json: 1 threads, 13 ops, 6s, 4 notes
        tutorial/example1.json: 1 threads, 20 ops, 2s, 5 notes
        tutorial/example2.json: 1 threads, 21 ops, 2s, 5 notes
        tutorial/example3.json: 12 threads, 50 ops, open, 0 notes
        tutorial/example4.json: 2 threads, 30 ops, open, 0 notes
        tutorial/example5.json: 2 threads, 44 ops, open, 0 notes
        tutorial/example6.json: 1 threads, 24 ops, 2s, 5 notes
        tutorial/example7.json: 2 threads, 57 ops, 5s, 5 notes
        tutorial/example8.json: 1 threads, 29 ops, 2s, 5 notes
        video-long.json: 17 threads, 351 ops, 600s, 5 notes
        video-short.json: 17 threads, 351 ops, 6s, 5 notes
    "#]].assert_eq(&seen);
}

#[test]
fn damaged_files_are_refused_without_a_crash() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rt-app");
    let mut found = Vec::new();
    files(&folder, &mut found);
    for file in found {
        let text = fs::read_to_string(&file).unwrap();
        for (end, c) in text.char_indices().step_by(5) {
            // Cut off here; and with this character lost, doubled or replaced by another.
            let (before, behind) = (&text[..end], &text[end + c.len_utf8()..]);
            for damaged in [
                before.to_string(),
                format!("{before}{behind}"),
                format!("{before}{c}{c}{behind}"),
                format!("{before}7{behind}"),
                format!("{before}\"{behind}"),
            ] {
                let _ = RtApp::parse(&damaged, "damaged.json");
            }
        }
    }
}
