//! Errors of a hold that changes hands.

use std::fmt;

use quorlock_core::renewal::Lost;

/// The error of [`Guard::hand_over`](crate::Guard::hand_over) and of its [blocking](crate::blocking::Guard::hand_over) form.
#[derive(Debug, thiserror::Error)]
#[error("{names}: not handed over: {problem}")]
#[non_exhaustive]
pub struct HandOverError<G> {
    /// The guard, which holds the lock as before.
    pub guard: G,
    /// The names that are locked.
    pub names: String,
    /// The reason.
    pub problem: HandOverProblem,
}

/// Why a guard could not be handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HandOverProblem {
    /// The lock is lost.
    Lost(Lost),
    /// The hold has other guards, or its owner reads beside it.
    Shared,
    /// It is a read lock, which has no owner alone.
    Reads,
    /// The lock has names of several clients, and a ticket is for one.
    SeveralClients,
}

impl fmt::Display for HandOverProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandOverProblem::Lost(lost) => fmt::Display::fmt(lost, f),
            HandOverProblem::Shared => f.write_str(
                "other guards share the hold, or its owner reads beside it: release those first",
            ),
            HandOverProblem::Reads => f.write_str(
                "a read lock cannot be handed over: acquire it in the other process, which readers do not keep out",
            ),
            HandOverProblem::SeveralClients => f.write_str(
                "it has names of several clients: lock them separately, and hand over each guard",
            ),
        }
    }
}

/// The error for a text that is no [`Ticket`](crate::Ticket). It never contains the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "not a ticket of Guard::hand_over: {0}; pass on the whole text, which has neither spaces nor line breaks"
)]
pub struct TicketError(pub(crate) &'static str);
