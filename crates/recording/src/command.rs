//! CPU masks that the recorded command shows.
//!
//! Programs of the recordings in `traces/` restrict their own CPUs by an argument; the command is in `cmd.txt` beside
//! the trace.

use schedlab_topology::CpuMask;

use super::affinity::AffinityHint;

/// What a command shows about its tasks: `wl_stream 0,4,8,12 4 200` binds `st-*`.
pub fn hints_of_command(command: &str, nr_cpus: usize) -> Vec<AffinityHint> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    if program.rsplit('/').next() != Some("wl_stream") {
        return Vec::new();
    }
    match words.next().map(|list| CpuMask::parse_list(list, nr_cpus)) {
        Some(Ok(allowed)) => vec![AffinityHint { comm: "st-*".to_owned(), allowed }],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_binds_itself_shows_its_mask() {
        let mask = |command| hints_of_command(command, 16).first().map(|hint| hint.allowed.to_string());
        assert_eq!(mask("wl_stream 0,4,8,12 4 200").as_deref(), Some("0,4,8,12"));
        assert_eq!(mask("wl_stream - 8 200"), None);
        assert_eq!(mask("wl_pipes 4 5 600"), None);
    }
}
