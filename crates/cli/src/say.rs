//! Messages on standard error, fitted to the width of its terminal.

use crate::width::{of_terminal, wrapped};

/// Prints a message with the command's name before it.
macro_rules! say {
    ($($argument:tt)*) => { $crate::say::say(&format!($($argument)*)) };
}

/// Prints a message with the command's name before it.
pub fn say(message: &str) {
    let width = of_terminal(std::io::stderr()).map_or(usize::MAX, |width| width.max(40));
    eprint!("{}", broken(message, width));
}

fn broken(message: &str, width: usize) -> String {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    // Quoted lines of a file with a mark below them, and messages of a compiler, have their own form.
    if lines.next().is_some() {
        return format!("schedlab: {message}\n");
    }
    match "schedlab: ".len() + first.chars().count() <= width {
        true => format!("schedlab: {first}\n"),
        false => wrapped("schedlab: ", first, width),
    }
}

#[cfg(test)]
mod tests {
    use super::broken;

    #[test]
    fn a_message_that_is_wider_than_the_terminal_is_broken_between_words() {
        let message = "there is no kernel \"v9\"; there are v4.13, v5.5";
        assert_eq!(
            broken(message, 40),
            "schedlab: there is no kernel \"v9\"; there\n          are v4.13, v5.5\n"
        );
        assert_eq!(broken(message, 57), format!("schedlab: {message}\n"));
        assert_eq!(broken("a.toml:1:\n  | x\n  | ^", 40), "schedlab: a.toml:1:\n  | x\n  | ^\n");
    }
}
