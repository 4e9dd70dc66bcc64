//! What ends a recording: its time is over, the command ended, or the user interrupts it.

use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::Error;

/// How long a command may take to terminate.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The requested time is over.
    Time,
    /// The command ended.
    Command(ExitStatus),
    /// Ctrl-C, or a signal that terminates programs.
    Interrupt,
}

/// Waits for the end.
pub struct Stop {
    sender: Sender<Ended>,
    receiver: Receiver<Ended>,
    end: Option<Instant>,
    command: Option<Pid>,
}

impl Stop {
    /// Waits only for interrupts.
    pub fn new() -> Stop {
        let (sender, receiver) = channel();
        Stop { sender, receiver, end: None, command: None }
    }

    /// To be called at an interrupt.
    pub fn interrupt(&self) -> impl Fn() + Send + 'static {
        let sender = self.sender.clone();
        // The receiver is gone if the recording has ended by itself.
        move || {
            let _ = sender.send(Ended::Interrupt);
        }
    }

    /// Also ends after the given time from now.
    pub fn after(&mut self, time: Duration) {
        self.end = Instant::now().checked_add(time);
    }

    /// Starts a command, and also ends when the command ends.
    pub fn with(&mut self, command: &[String]) -> Result<(), Error> {
        let Some((program, args)) = command.split_first() else { return Ok(()) };
        let child = Command::new(program).args(args).spawn();
        let mut child = child.map_err(|error| Error::new(format!("{program}: {error}")))?;
        self.command = Pid::from_raw(child.id() as i32);
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = sender.send(Ended::Command(status));
            }
        });
        Ok(())
    }

    /// Terminates the command after an interrupt, because only an interrupt from the terminal reaches it directly.
    /// Returns whether it has ended.
    pub fn end_command(&self) -> bool {
        let Some(command) = self.command else { return true };
        // It may have ended at this moment.
        let _ = kill_process(command, Signal::TERM);
        matches!(self.receiver.recv_timeout(PATIENCE), Ok(Ended::Command(_)))
    }

    /// Waits for the given time, or until the recording ends.
    pub fn wait(&self, wait: Duration) -> Option<Ended> {
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
        match self.receiver.recv_timeout(left.map_or(wait, |left| left.min(wait))) {
            Ok(ended) => Some(ended),
            Err(RecvTimeoutError::Timeout) => left.filter(|left| *left <= wait).map(|_| Ended::Time),
            Err(RecvTimeoutError::Disconnected) => unreachable!("we hold a sender ourselves"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn whatever_comes_first_ends_it() {
        let mut stop = Stop::new();
        assert_eq!(stop.wait(SHORT), None);
        stop.interrupt()();
        assert_eq!(stop.wait(LONG), Some(Ended::Interrupt));
        stop.with(&["sh".to_owned(), "-c".to_owned(), "exit 3".to_owned()]).unwrap();
        let Some(Ended::Command(status)) = stop.wait(LONG) else { panic!("the command ends") };
        assert_eq!(status.code(), Some(3));
        assert!(Stop::new().end_command(), "there is none");
        let mut endless = Stop::new();
        endless.with(&["sleep".to_owned(), "60".to_owned()]).unwrap();
        assert!(endless.end_command());
        stop.after(SHORT);
        assert_eq!(stop.wait(LONG), Some(Ended::Time));
        let error = stop.with(&["no-such-program-here".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("no-such-program-here: "), "{error}");
    }
}
