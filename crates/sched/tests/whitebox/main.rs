//! The deciders compared with white-box recordings: given the inputs of a real kernel's function, each must
//! return the same result. `traces/README.md` describes the recordings.

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
