//! The fair class: pure policy that decides and says why.
