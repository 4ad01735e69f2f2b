//! The permits that were not granted.

use std::time::Duration;

use quorlock_core::transport::Cause;

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

    /// Whether every permit would be refused for the same reason, such as a missing right. A key that is not a lock is in the way of
    /// one permit alone.
    pub(super) fn is_of_all(&self) -> bool {
        let Some(AcquireError::Refused { nodes, .. }) = &self.permanent else {
            return false;
        };
        let mut errors = nodes.iter().filter_map(|node| node.error.as_ref());
        self.holder.is_none() && errors.any(|error| error.cause != Cause::WrongType)
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
            clients: Vec::new(),
        };
        match (self.holder, self.permanent) {
            (Some(holder), _) => contended(holder),
            (None, Some(error)) => error,
            // Nothing was tried, because this client holds every permit.
            (None, None) => contended(Holder::ThisClient),
        }
    }
}
