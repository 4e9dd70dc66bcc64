//! The deciders against white-box recordings: given what a real kernel's function saw, each must return what that
//! function returned. `traces/README.md` describes the recordings.

mod balance;
mod choice;
mod follow;
mod fork;
mod pass;
mod placement;
mod queueing;
mod queues;
mod recording;
mod score;
mod shadow;
mod snapshot;
mod wake;
