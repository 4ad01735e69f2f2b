//! The permits that were not granted.

use std::time::Duration;

use super::look::Seen;
use super::names::PermitNames;
use crate::error::{AcquireError, Holder};

/// Why permits were not granted.
#[derive(Default)]
pub(super) struct Refusals {
    /// Who holds permits: others, if they hold any of them.
    holder: Option<Holder>,
    /// The last error because of which a permit can never be granted, such as a key that is not a lock.
    permanent: Option<AcquireError>,
}

impl Refusals {
    /// Adds the error of one permit.
    ///
    /// # Errors
    /// The same error if it concerns all permits, because they are on the same nodes.
    pub(super) fn add(&mut self, error: AcquireError) -> Result<(), AcquireError> {
        match error {
            AcquireError::Contended { holder, .. } => {
                if self.holder != Some(Holder::Others) {
                    self.holder = Some(holder);
                }
                Ok(())
            }
            AcquireError::Refused { .. } | AcquireError::OtherMode { .. } => {
                self.permanent = Some(error);
                Ok(())
            }
            other => Err(other),
        }
    }

    /// Whether a permit was refused because of its holder.
    pub(super) fn has_holder(&self) -> bool {
        self.holder.is_some()
    }

    /// Adds what a look has shown.
    pub(super) fn see(&mut self, seen: &Seen) {
        if seen.has_holder {
            self.holder = Some(Holder::Others);
        }
    }

    /// Returns the error when no permit is left.
    pub(super) fn error(self, names: &PermitNames, tried: Duration) -> AcquireError {
        let contended = |holder| AcquireError::Contended {
            names: names.title(),
            tried,
            holder,
        };
        match (self.holder, self.permanent) {
            (Some(holder), _) => contended(holder),
            (None, Some(error)) => error,
            // Nothing was tried, because this client holds every permit.
            (None, None) => contended(Holder::ThisClient),
        }
    }
}
