//! Keys that are not locks under the names of locks.

use quorlock::Locks;
use quorlock::operate::Summary;

use crate::failure::{Code, Failure};

/// Fails if a key that is no lock keeps every client from one of these names: no wait ends that. To the script of an
/// acquire, a stranger's hash looks like the claim of another owner.
///
/// A user who may lock but not inspect learns nothing here, and waits.
pub(crate) async fn refuse_strangers(
    locks: &Locks,
    names: impl Iterator<Item = &String>,
) -> Result<(), Failure> {
    for name in names {
        let Ok(inspection) = locks.inspect(name).await else {
            continue;
        };
        if inspection.summary() == Summary::Obstructed {
            let text = inspection.to_string();
            let summary = text.lines().next().unwrap_or_default();
            return Err(Failure::new(
                Code::CONFIG,
                format!("{summary}: lock another name, or set a --key-prefix"),
            ));
        }
    }
    Ok(())
}
