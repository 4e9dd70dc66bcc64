//! Published tables: every name in them exists, and nothing that simulates reads their numbers.

use schedlab::reproduce::{Figure, Options, Published, Reproduced, published, reproduce};
use schedlab::sched::Kernel;

fn quick(table: &Published, threads: usize) -> Reproduced {
    let options = Options { quick: true, runs: Some(1), threads, ..Options::default() };
    reproduce(table, &options, &|_, _| ()).unwrap()
}

fn text(name: &str) -> String {
    let path = format!("{}/../../published/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_file_under_published_and_scenarios_comes_with_the_command() {
    let root = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    for folder in ["published", "scenarios"] {
        for entry in std::fs::read_dir(format!("{root}/{folder}")).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                continue;
            }
            let name = entry.file_name().into_string().unwrap();
            let known = match folder {
                "published" => published().iter().any(|p| p.file == format!("published/{name}")),
                _ => schedlab::embedded_scenario(&name).is_some(),
            };
            assert!(known, "{folder}/{name} is not named in embedded.rs");
        }
    }
}

#[test]
fn other_published_numbers_give_the_same_simulated_ones() {
    let parse = |text: &str| Published::parse("kthread-stack.toml", text).unwrap();
    let original = text("kthread-stack");
    let other = original.replace("58.69", "5869").replace("30.21", "1").replace(" cal ", " pred ");
    assert_ne!(original, other);
    let (a, b) = (quick(&parse(&original), 0), quick(&parse(&other), 0));
    let simulated =
        |r: &Reproduced| -> Vec<Option<Figure>> { r.cells.iter().map(|c| c.simulated.clone()).collect() };
    assert_eq!(simulated(&a), simulated(&b));
    assert_ne!(a.text(), b.text(), "the numbers are printed");
}

#[test]
fn another_kernel_runs_where_the_scenarios_name_one() {
    let table = published().into_iter().find(|table| table.name == "numa-affinity").unwrap();
    let with = |name: &str, kernel: &str| {
        let instead = vec![(name.to_string(), Kernel::parse(kernel).unwrap())];
        reproduce(&table, &Options { quick: true, runs: Some(1), instead, ..Options::default() }, &|_, _| ())
    };
    let of = |found: &Reproduced, column: &str| -> Vec<Option<Figure>> {
        let cells = found.cells.iter().filter(|cell| cell.column == column);
        cells.map(|cell| cell.simulated.clone()).collect()
    };
    let both = with("v5.18+NUMA_IMB_AFFINITY", "v5.18").unwrap();
    assert!(!of(&both, "pin_patch").is_empty());
    assert_eq!(of(&both, "pin_patch"), of(&both, "pin_base"));
    let published = quick(&table, 0);
    assert_ne!(of(&published, "pin_patch"), of(&published, "pin_base"), "the comparison can fail");
    assert!(both.text().contains("instead of those named: v5.18+NUMA_IMB_AFFINITY: v5.18"));
    let error = with("v5.19", "v5.18").map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("no scenario of the table runs v5.19; they run v5.18, "), "{error}");
}

#[test]
fn any_number_of_threads_prints_the_same() {
    let table = &published()[0];
    assert_eq!(quick(table, 1).text(), quick(table, 3).text());
}

#[test]
fn what_cannot_be_read_is_named() {
    let original = text("numa-affinity");
    for (from, to, said) in [
        ("figure = \"fork CPUs\"", "figure = \"fork CPU\"", "gives no figure \"fork CPU\""),
        ("change = \"pin_base\"", "change = \"pin\"", "column \"pin_base_change\" names a column \"pin\""),
        (
            "94220.50 pred 15%",
            "94220.50 guess 15%",
            "row \"copy\", column \"pin_base\": \"guess\" is not cal, pred or info",
        ),
        ("94220.50 pred 15%", "94220.50 pred 15", "\"15\" is not a tolerance"),
        (
            "scenario = \"stream-pinned-numa.toml\"",
            "scenario = \"none.toml\"",
            "there is no scenario \"none.toml\"",
        ),
        ("kernel = \"v5.18\" }", "kernel = \"v5.19\" }", "has no kernel \"v5.19\""),
        ("* pred sign", "7 pred sign", "it follows from other columns"),
    ] {
        assert!(original.contains(from), "{from}");
        let result = Published::parse("t.toml", &original.replace(from, to))
            .and_then(|table| reproduce(&table, &Options { quick: true, ..Options::default() }, &|_, _| ()));
        let error = result.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
