//! The algorithms that the commands know.

use std::sync::{PoisonError, RwLock};

use super::{LeaseRecord, LockAlgorithm, RegisterError};
use quorlock_sim_plan::variant::Algorithm;

static ALGORITHMS: RwLock<Vec<&'static dyn LockAlgorithm>> = RwLock::new(Vec::new());

/// Registers an algorithm, so that plans and the commands know it by its name. Registering it again changes nothing.
///
/// # Errors
/// [`RegisterError`] if the name is malformed, or if another variant of the lock has it.
pub fn register(algorithm: &'static dyn LockAlgorithm) -> Result<(), RegisterError> {
    let named = Algorithm::register(algorithm.name(), algorithm.nodes())?;
    let mut known = ALGORITHMS.write().unwrap_or_else(PoisonError::into_inner);
    if known.iter().all(|known| known.name() != named.name()) {
        known.push(algorithm);
    }
    Ok(())
}

/// Returns the algorithms, first [`LeaseRecord`], then the others in the order of their registration.
pub(crate) fn registered() -> Vec<&'static dyn LockAlgorithm> {
    let known = ALGORITHMS.read().unwrap_or_else(PoisonError::into_inner);
    let first: &'static dyn LockAlgorithm = &LeaseRecord;
    std::iter::once(first)
        .chain(known.iter().copied())
        .collect()
}

/// Returns the algorithm of a plan.
pub(crate) fn named(algorithm: Algorithm) -> &'static dyn LockAlgorithm {
    let mut known = registered().into_iter();
    let found = known.find(|known| known.name() == algorithm.name());
    found.expect("BUG: plans name only algorithms that were registered here")
}
