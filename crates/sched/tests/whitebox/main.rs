//! The deciders against white-box recordings: given what a real kernel's function saw, each
//! must return what that function returned. `traces/README.md` tells what was recorded.

mod choice;
mod fork;
mod placement;
mod queueing;
mod recording;
mod score;
mod shadow;
mod snapshot;
mod wake;
