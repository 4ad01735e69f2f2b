//! Holds that a client keeps for the whole run, beside its work, on names that no other client asks for.
//!
//! They are for faults that concern some names only. A server that refuses a call because of one name must not end the
//! holds on the others, which the same client renews in the same call. No checker of the history sees such a loss:
//! the name is free, and nothing else is broken.

use futures_util::FutureExt as _;

use super::lock_under_test::{self, LockUnderTest};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::Kind;
use quorlock_sim_world::history::Process;

/// The number of bystanders of a client for each name that it works with.
const MANY: u16 = 3;

/// The number of the bystanders whose keys are moved first if a move of their slot pauses.
const MOVED_FIRST: u16 = 1;

/// The bystanders of a client that are still held.
#[derive(Debug, Default)]
pub(super) struct Bystanders(Vec<(String, quorlock::Guard)>);

/// Returns whether all faults of a plan leave the bystanders of clients alone, so that none of them may be lost.
pub(super) fn are_spared(plan: &Plan) -> bool {
    let spare = |kind: Kind| matches!(kind, Kind::RevokeKeys | Kind::MigrateSlot);
    let mut faults = plan.faults.iter();
    plan.variant.has_product_clients()
        && !plan.faults.is_empty()
        && faults.all(|fault| spare(fault.kind()))
}

/// Returns whether a key belongs to a bystander that is moved first.
pub(super) fn is_moved_first(key: &str) -> bool {
    key.contains(":beside:") && key.ends_with(&format!(":{MOVED_FIRST}"))
}

impl Bystanders {
    /// Acquires the bystanders of a client, which is the only one that asks for them.
    ///
    /// # Errors
    /// Returns the reason why one was not acquired.
    pub(super) async fn acquire(
        subject: &LockUnderTest,
        process: Process,
        plan: &Plan,
    ) -> Result<Self, String> {
        let LockUnderTest::Product { locks, .. } = subject else {
            return Ok(Bystanders::default());
        };
        let mut held = Vec::new();
        for of in 0..lock_under_test::names(plan) {
            for number in 0..MANY {
                let place = usize::from(of) % locks.len().max(1);
                let Some(locks) = locks.get(place) else {
                    continue;
                };
                let name = name(plan, of, process, number);
                let guard = locks.lock(&name).acquire().await;
                held.push((name, guard.map_err(|error| error.to_string())?));
            }
        }
        Ok(Bystanders(held))
    }

    /// Removes the bystanders that are no longer held, and returns the name of each, and why it was lost.
    pub(super) fn take_lost(&mut self) -> Vec<String> {
        let lost = self.0.extract_if(.., |(_, guard)| !guard.is_held());
        let told = lost.map(|(name, guard)| match guard.lost().now_or_never() {
            Some(why) => format!("{name} ({why:?})"),
            None => name,
        });
        told.collect()
    }

    /// Releases the bystanders.
    pub(super) async fn release(self) {
        for (_, guard) in self.0 {
            let _ = guard.release().await;
        }
    }
}

/// Returns the name of a bystander. On a cluster that is one node, it is in the slot of the name that the clients
/// compete for, so that both are renewed in one call. A member of a majority has all names in one slot.
fn name(plan: &Plan, of: u16, process: Process, number: u16) -> String {
    let of = lock_under_test::name(of);
    let Process { client, restarts } = process;
    match plan.is_one_cluster() {
        true => format!("{{{of}}}:beside:{client}.{restarts}:{number}"),
        false => format!("{of}:beside:{client}.{restarts}:{number}"),
    }
}
