//! Chores of the project: `cargo xtask tidy`, `cargo xtask kernel-map`,
//! `cargo xtask fidelity`, `cargo xtask contested`, `cargo xtask ablation`, `cargo xtask fidelity-loop`, `cargo xtask replay-fidelity`,
//! `cargo xtask switches`, `cargo xtask effects`, `cargo xtask predictions`, `cargo xtask rules`,
//! `cargo xtask instructions`, `cargo xtask lockstep`, `cargo xtask lockstep-random`, `cargo xtask noticed`.

mod ablation;
mod change;
mod contested;
mod disagreements;
mod effects;
mod fidelity;
mod fidelity_loop;
mod instructions;
mod kernel_map;
mod links;
mod lockstep;
mod lockstep_random;
mod near;
mod noticed;
mod predictions;
mod recording;
mod replay_fidelity;
mod rules;
mod source;
mod spread;
mod switches;
mod tidy;
mod unknown;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    let verb = std::env::args().nth(1).unwrap_or_default();
    let result = match verb.as_str() {
        "instructions" => instructions::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "ablation" => ablation::run(),
        "contested" => contested::run(),
        "kernel-map" => kernel_map::write(),
        "effects" => effects::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "fidelity" => fidelity::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "fidelity-loop" => fidelity_loop::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "predictions" => predictions::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "replay-fidelity" => replay_fidelity::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "lockstep" => lockstep::lockstep(&std::env::args().skip(2).collect::<Vec<_>>()),
        "lockstep-random" => lockstep_random::random(&std::env::args().skip(2).collect::<Vec<_>>()),
        "noticed" => noticed::noticed(&std::env::args().skip(2).collect::<Vec<_>>()),
        "rules" => rules::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "switches" => switches::run(),
        "tidy" => tidy::check(),
        "unknown" => unknown::write(),
        _ => Err("usage: cargo xtask tidy | unknown | instructions [--check | --write | --release] [CPUS..] | kernel-map | switches | effects [--recorded FOLDER..] | fidelity [--check] | predictions [--quick] [--ask] [ID..] [--with NAME=VALUE..] | contested | ablation | fidelity-loop [LOAD.. | --recorded FOLDER..] | replay-fidelity [WORD..] | rules [NAME..] | lockstep [KERNEL=TREE..] [steps=N] [seeds=N] [machines=A,..] [loads=A+..] | lockstep-random [KERNEL=TREE..] [sets=N] [from=N] [steps=N] | noticed, with the words of lockstep"
            .to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
