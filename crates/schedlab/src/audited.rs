//! A recording audited, with the facts beside it.

use std::io::{Cursor, Read, Seek};

use crate::audit::{Audit, AuditReport, Options};
use crate::error::Error;
use crate::recording::Facts;
use crate::trace::read::{feed, open};

/// Judges every decision of a recording. [`Options::of`] derives initial options from the facts.
///
/// # Errors
/// A trace that cannot be read.
pub fn audit_recording(
    trace: impl Read + Seek + 'static,
    facts: &Facts,
    options: Options,
) -> Result<AuditReport, Error> {
    let mut audit = Audit::new(&facts.topology, &facts.kernel, options);
    let spool = || Ok(Cursor::<Vec<u8>>::default());
    let reader = open(trace, spool).map_err(|e| Error::new(e.to_string()))?;
    feed(reader, &mut audit).map_err(|e| Error::new(e.to_string()))?;
    Ok(audit.finish().0)
}
