//! The numbered statements that requests make about a hold.

use quorlock_core::lease::Lease;

/// What requests state about a hold. The requests of one statement go to different members, so each node sees a
/// number only once.
///
/// All fields are drawn together, under the hold's mutex, so that **a statement with a larger number never has a
/// shorter lease**, whichever request is sent or arrives first.
///
/// The count needs no order: a node frees a claim when a release states 0, never by counting. A node that receives an
/// older count shows it until the next renewal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    pub(super) number: u64,
    pub(super) count: u32,
    pub(crate) lease: Lease,
    /// Whether a re-acquisition continues the hold that was adopted.
    pub(super) continues: bool,
}

/// The first number after a won round. Smaller numbers are those of the round: its acquires and its token proposals.
const AFTER_THE_ROUND: u64 = 16;

/// The counter of statements of one hold.
#[derive(Debug)]
pub(super) struct Statements {
    /// The number of the next statement.
    next: u64,
}

impl Statements {
    /// Starts after the numbers of the round.
    pub(super) fn new() -> Self {
        Statements {
            next: AFTER_THE_ROUND,
        }
    }

    /// Draws the next statement of a hold with `count` entries. The caller must hold the hold's mutex, and must have
    /// read the lease under it.
    pub(super) fn next(&mut self, count: u32, lease: Lease) -> Statement {
        // A fresh number: suppose number and lease are drawn separately. The keeper renews, and reads the lease of 1 s.
        // The holder extends the lease to 5 s and draws number 17. The keeper then draws 18. Nodes keep "18, 1 s" as
        // claim version while the holder relies on 5 s. Contender C is shown this version unchanged for 1 s, and
        // replaces the claim.
        let number = self.next;
        self.next = number.saturating_add(1);
        Statement {
            number,
            // A claim that exists is held at least once; 0 would free it.
            count: count.max(1),
            lease,
            continues: false,
        }
    }
}
