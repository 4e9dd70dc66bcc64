//! Which groups tasks were in, and with which shares.
//!
//! Loads and virtual times are divided among groups first. Where groups are hidden, any of several answers may be right.

use super::Shadow;
use super::about::About;
use super::list::Unknown;

pub(super) const ABOUT: About =
    About::new("GROUPS", "which groups tasks were in: cgroups, or autogroups of sessions");

impl Shadow {
    /// The fact that leaves a comparison open: groups if those are hidden, otherwise `own`.
    pub fn groups_or(&self, own: Unknown) -> Unknown {
        if self.groups_hidden { Unknown::Groups } else { own }
    }
}
