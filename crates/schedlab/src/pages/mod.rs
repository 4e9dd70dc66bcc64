//! Results as pages: which blocks they contain, and in which order.

mod audited;
mod bench;
mod compare;
mod curves;
mod detected;
mod difference;
mod picture;

use std::collections::BTreeMap;

use schedlab_sched::Reason;

pub use audited::audited;
pub use bench::{Benched, bench};
pub use compare::{Compared, Picture, compare, telling_row, with_fidelity};
pub use detected::detected;
pub use difference::difference;
pub use picture::picture;

/// A sentence for every reason, by name.
pub fn reasons() -> BTreeMap<String, String> {
    Reason::ALL.iter().map(|reason| (reason.name().to_owned(), reason.sentence().to_owned())).collect()
}
