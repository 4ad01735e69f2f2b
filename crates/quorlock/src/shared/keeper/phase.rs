//! The life cycle of a keeper.

use crate::sync::atomic::{AtomicU8, Ordering};

/// The phase of a keeper, which never moves back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum Phase {
    /// The client acquires locks.
    Running,
    /// The client was closed: everything that is held or won later is released.
    Closing,
    /// The client was dropped: the task ends when nothing is left to do.
    Finishing,
    /// The task has ended. If it ended early, its runtime was shut down.
    Dead,
}

impl Phase {
    const ALL: [Phase; 4] = [
        Phase::Running,
        Phase::Closing,
        Phase::Finishing,
        Phase::Dead,
    ];
}

/// The current phase of a keeper. It is changed under the keeper's mutex and read without it, because every poll of a
/// waiter checks whether the keeper is dead.
#[derive(Debug)]
pub(super) struct CurrentPhase(AtomicU8);

impl CurrentPhase {
    pub(super) fn get(&self) -> Phase {
        let index = usize::from(self.0.load(Ordering::Acquire));
        Phase::ALL.get(index).copied().unwrap_or(Phase::Dead)
    }

    /// Moves to this phase, unless a later one was reached.
    pub(super) fn reach(&self, phase: Phase) {
        self.0.fetch_max(phase as u8, Ordering::AcqRel);
    }
}

impl Default for CurrentPhase {
    fn default() -> Self {
        CurrentPhase(AtomicU8::new(Phase::Running as u8))
    }
}

/// The holds that the task releases at its next look.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum GiveBack {
    #[default]
    None,
    /// Locks over several clients, one of which was closed.
    OfClosedClients,
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_is_read_as_it_was_reached() {
        let current = CurrentPhase::default();
        for phase in Phase::ALL {
            current.reach(phase);
            assert_eq!(current.get(), phase);
        }
    }

    #[test]
    fn a_client_that_is_dropped_without_being_closed_finishes() {
        let current = CurrentPhase::default();
        current.reach(Phase::Finishing);
        assert_eq!(current.get(), Phase::Finishing);
    }

    #[test]
    fn no_keeper_comes_back_to_life() {
        let current = CurrentPhase::default();
        current.reach(Phase::Dead);
        for phase in Phase::ALL {
            current.reach(phase);
            assert_eq!(current.get(), Phase::Dead);
        }
    }

    #[test]
    fn what_is_given_back_only_grows() {
        assert!(GiveBack::None < GiveBack::OfClosedClients);
        assert!(GiveBack::OfClosedClients < GiveBack::All);
    }
}
