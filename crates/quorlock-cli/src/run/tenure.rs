//! The right under which a command runs: a lock that is held, or the term of a leader.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorlock::{Guard, Leadership, LostSignal, ValidityWatch};

/// A period for which a command may run. The client's own clock bounds it.
pub(crate) trait Tenure {
    /// Returns how long the tenure remains valid if it is not renewed.
    fn validity(&self) -> Duration;

    /// Returns a watch of the validity, whose end moves in both directions.
    fn watch_validity(&self) -> ValidityWatch;

    /// Returns a future that is ready when the tenure is lost.
    fn lost(&self) -> LostSignal;

    /// Returns the end of the validity on the wall clock, in whole seconds since 1970.
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

    fn watch_validity(&self) -> ValidityWatch {
        Guard::watch_validity(self)
    }

    fn lost(&self) -> LostSignal {
        Guard::lost(self)
    }
}

impl Tenure for Leadership {
    fn validity(&self) -> Duration {
        Leadership::validity(self)
    }

    fn watch_validity(&self) -> ValidityWatch {
        Leadership::watch_validity(self)
    }

    fn lost(&self) -> LostSignal {
        Leadership::lost(self)
    }
}
