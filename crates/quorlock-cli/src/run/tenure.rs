//! What a command runs under: a lock that is held, or the term of a leader.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorlock::{Guard, Leadership, LostSignal};

/// A time for which a command may run, that ends by the client's own clock at the latest.
pub(crate) trait Tenure {
    /// How much is left of it, if nothing renews it.
    fn validity(&self) -> Duration;

    /// Ready when it is over.
    fn lost(&self) -> LostSignal;

    /// Its end on the wall clock, in whole seconds.
    #[expect(
        clippy::disallowed_methods,
        reason = "what a script compares with date +%s"
    )]
    fn deadline(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        (now.unwrap_or_default() + self.validity()).as_secs()
    }
}

impl Tenure for Guard {
    fn validity(&self) -> Duration {
        Guard::validity(self)
    }

    fn lost(&self) -> LostSignal {
        Guard::lost(self)
    }
}

impl Tenure for Leadership {
    fn validity(&self) -> Duration {
        Leadership::validity(self)
    }

    fn lost(&self) -> LostSignal {
        Leadership::lost(self)
    }
}
