//! What requests state of a hold, one after another.

use quorlock_core::lease::Lease;

/// What requests state of a hold. Those of one statement go to different members: each node hears a number once.
///
/// All of it is drawn together, under the hold's mutex: **a statement with a larger number has no shorter lease**, whichever
/// of two requests leaves or arrives first. Drawn one after the other, A, which renews, could read the lease of 1 s; B,
/// which extends, raise it to 5 s and take number 17; and A then take 18. The node would keep "18, 1 s" as the claim's
/// claim version while B relies on 5 s, and a contender that saw this claim version for 1 s would replace the claim.
///
/// The count needs no order: nodes free a claim when they are told "0", and never by counting. One that is told an older
/// count shows it until the next renewal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    pub(super) number: u64,
    pub(super) count: u32,
    pub(crate) lease: Lease,
}

/// The first numbers are those of the round that won the hold: its acquires and its proposals of a token.
const AFTER_THE_ROUND: u64 = 16;

/// The statements of one hold, numbered.
#[derive(Debug)]
pub(super) struct Statements {
    /// The number of the next one.
    next: u64,
}

impl Statements {
    /// Those that follow the round.
    pub(super) fn new() -> Self {
        Statements {
            next: AFTER_THE_ROUND,
        }
    }

    /// The next statement, of a hold with so many entries. The caller holds the hold's mutex.
    pub(super) fn next(&mut self, count: u32, lease: Lease) -> Statement {
        let number = self.next;
        self.next = number.saturating_add(1);
        Statement {
            number,
            // A claim that stands is held at least once.
            count: count.max(1),
            lease,
        }
    }
}
