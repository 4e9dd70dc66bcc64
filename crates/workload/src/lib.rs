//! What tasks do: programs of run, sleep, wake and wait.
