//! `schedlab scenarios` lists the built-in scenarios; `schedlab new` writes a scenario to begin with.

use schedlab::workload::models::Model;
use schedlab::{embedded_scenario, scenario_names};
use serde_json::json;

use crate::args::{New, Scenarios};
use crate::error::{Error, Status};
use crate::output::{self, Format};

/// Lists the scenarios with a line each.
pub fn list(args: &Scenarios) -> Result<Status, Error> {
    let fits = |name: &str, text: &str| {
        let wanted = args.search.as_ref().map(|search| search.to_lowercase());
        wanted.is_none_or(|wanted| name.contains(&wanted) || text.to_lowercase().contains(&wanted))
    };
    let all: Vec<(&str, &str)> = scenario_names()
        .map(|name| (name, embedded_scenario(name).expect("it is one of them")))
        .filter(|(name, text)| fits(name, text))
        .collect();
    if all.is_empty() {
        let search = args.search.as_deref().unwrap_or_default();
        return Err(Error::new(format!("no scenario mentions \"{search}\"; `schedlab scenarios` lists all")));
    }
    match args.format {
        Format::Json => {
            let told: Vec<_> =
                all.iter().map(|(name, text)| json!({"name": name, "story": story(text)})).collect();
            output::print_json(&told)?;
        }
        Format::Text => output::print(|out| {
            let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
            for (name, text) in &all {
                writeln!(out, "{name:<width$}  {}", story(text))?;
            }
            writeln!(out, "\nRun one by its name: schedlab compare {}", all[0].0)
        })?,
    }
    Ok(Status::Done)
}

/// A sentence shorter than this is joined with the next one.
const STORY_LEAST: usize = 30;

/// The first sentence of a scenario's opening comment.
fn story(text: &str) -> String {
    let lines =
        text.lines().take_while(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let text: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let text = text.join(" ");
    // The name of a benchmark alone is not informative enough.
    let ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let end = ends.into_iter().find(|&end| end >= STORY_LEAST).unwrap_or(text.len());
    text[..end].to_string()
}

/// Writes a commented scenario.
pub fn new(args: &New) -> Result<Status, Error> {
    let text = match &args.model {
        None => OWN.to_string() + TAIL,
        Some(name) => of_model(name)?,
    };
    if let Some(path) = &args.file {
        if path.exists() {
            return Err(Error::new(format!("{} is there already; take another name", path.display())));
        }
        output::write(Some(path), |out| out.write_all(text.as_bytes()))?;
        say!("wrote {0}; run it by `schedlab compare {0}`", path.display());
        return Ok(Status::Done);
    }
    output::print_as_is(|out| out.write_all(text.as_bytes()))?;
    Ok(Status::Done)
}

fn of_model(name: &str) -> Result<String, Error> {
    let Some(model) = Model::named(name) else {
        return Err(Error::new(format!(
            "there is no model \"{name}\"; there are {}",
            Model::NAMES.join(", ")
        )));
    };
    let mut text = format!("# Describe the scenario here.\n\n{HEAD}\n[workload]\nmodel = {name:?}\n");
    text += "# Its parameters with their defaults; a list gives a row for each value.\n";
    for param in model.params() {
        let plain = param.value.parse::<i64>().is_ok() || matches!(param.value.as_str(), "true" | "false");
        let value = if plain { param.value } else { format!("{:?}", param.value) };
        text += &format!("# {}\n#{} = {value}\n", param.about, param.name);
    }
    text += "# Policy, nice value, slice and CPUs of all tasks, and the group they are in.\n\
             #policy = \"batch\"\n#nice = 5\n#slice = \"3ms\"\n#cpus = \"0-3\"\n#cgroup = \"/a\"\n\n";
    Ok(text + TAIL)
}

const HEAD: &str = "\
# A preset (schedlab topo zen3-2s), a regular machine (2x8x8x2 is sockets x caches x cores x threads), `host`, or a file.
machine = \"2x8x2\"
# The first is the baseline. Any rule can be switched: schedlab features lists them.
kernels = [\"v6.12\", \"v6.12+NO_SIS_UTIL\"]
# Runs of each kernel, with the same seeds.
runs = 5
seed = 1
# Virtual time after which a run ends, if it has not ended before.
limit = \"2s\"
";

const TAIL: &str = "\
# Columns other than kernels: each sets any parameters.
#[[variant]]
#name = \"short slices\"
#kernel.base_slice_ns = 700000

# Rows over any parameter.
#[rows]
#limit = [\"1s\", \"2s\"]

# What is expected; compare ends with status 1 if it is missed.
#[[expect]]
#metric = \"requests\"
#change = [-0.05, 0.05]
";

const OWN: &str = "\
# Describe the scenario here: a server that replies to clients, and background work.

# A preset (schedlab topo zen3-2s), a regular machine (2x8x8x2 is sockets x caches x cores x threads), `host`, or a file.
machine = \"2x8x2\"
# The first is the baseline. Any rule can be switched: schedlab features lists them.
kernels = [\"v6.12\", \"v6.12+NO_SIS_UTIL\"]
# Runs of each kernel, with the same seeds.
runs = 5
seed = 1

[workload]
name = \"server\"
# Length of a run.
duration = \"500ms\"

# Each of the 16 has a pipe of its own: {n} is its number.
[[workload.task]]
name = \"client\"
count = 16
program = \"loop forever; run 20us; mark begin; write ask{n} 64; read answer{n} 64; mark end; mark request 1; end\"

[[workload.task]]
name = \"server\"
count = 16
program = \"loop forever; read ask{n} 64; run uniform(20us,60us); write answer{n} 64; end\"

# Background work. Other keys: cpus = \"0-3\", policy = \"batch\", nice = 5, slice = \"3ms\", group = \"/a\".
[[workload.task]]
name = \"batch\"
count = 8
nice = 5
program = \"loop forever; run 1ms; end\"

[[workload.measure]]
name = \"requests\"
rule = \"rate\"
label = \"request\"

[[workload.measure]]
name = \"answer p99\"
rule = \"spans\"
at = \"p99\"
from = \"begin\"
to = \"end\"

";

/// The scenario for custom tasks, with optional parts.
#[cfg(test)]
fn own() -> String {
    OWN.to_string() + TAIL
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab::{NoFiles, Scenario};

    #[test]
    fn every_scenario_has_a_line_of_its_own() {
        for name in scenario_names() {
            let story = story(embedded_scenario(name).unwrap());
            assert!(story.len() > 20, "{name}: {story}");
        }
    }

    #[test]
    fn what_new_writes_can_be_run_with_and_without_what_is_commented_out() {
        let mut texts: Vec<String> = Model::NAMES.iter().map(|name| of_model(name).unwrap()).collect();
        texts.push(own());
        for text in texts {
            Scenario::parse("new", &text, &NoFiles).unwrap_or_else(|e| panic!("{e}\n{text}"));
        }
        let all = own()
            .replace("\n#[[variant]]", "\n[[variant]]")
            .replace("\n#name", "\nname")
            .replace("\n#kernel.", "\nkernel.");
        Scenario::parse("new", &all, &NoFiles).unwrap();
        assert_eq!(schedlab::Variant::of("new", &all).unwrap()[0].name, "short slices");
    }
}
