//! Scenarios that come with the project, for a command that is run elsewhere.

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name)))),*]
    };
}

const SCENARIOS: &[(&str, &str)] = scenarios!["stream-pinned-numa.toml"];

/// The text of a scenario by its file name.
pub fn embedded_scenario(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
