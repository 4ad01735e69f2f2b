//! A campaigning candidate in blocking code.

use std::sync::Arc;

use super::driver::Driver;
use crate::error::ReleaseError;
use crate::leader::{LeaderEvent, Leadership};

/// A candidate whose events are waited for, one after the other. See [`quorlock::Candidacy`](crate::Candidacy).
///
/// A term is renewed on the client's own thread while its leader works. Its end is reported by the next call of
/// [`Candidacy::next`]; before that, [`Leadership::is_leading`] tells. **A candidate that does not wait is not elected.**
///
/// Dropping it ends the candidacy and releases the name.
#[must_use = "a candidate that does not wait is not elected"]
#[derive(Debug)]
pub struct Candidacy {
    /// `None` once it has ended.
    candidacy: Option<crate::Candidacy>,
    driver: Arc<Driver>,
}

impl Candidacy {
    pub(super) fn new(candidacy: crate::Candidacy, driver: Arc<Driver>) -> Self {
        Candidacy {
            candidacy: Some(candidacy),
            driver,
        }
    }

    /// Waits for the next event; `None` after an error that waiting cannot cure.
    #[expect(
        clippy::should_implement_trait,
        reason = "the asynchronous one has this name, and an iterator would invite to skip events"
    )]
    pub fn next(&mut self) -> Option<LeaderEvent> {
        let mut candidacy = self.candidacy.take()?;
        let (candidacy, event) = self.driver.run(async move {
            let event = candidacy.next().await;
            (candidacy, event)
        });
        self.candidacy = Some(candidacy);
        event
    }

    /// Returns the term whose election was reported and whose end was not.
    #[must_use]
    pub fn leadership(&self) -> Option<&Leadership> {
        self.candidacy.as_ref()?.leadership()
    }

    /// Ends the candidacy, and the leadership with it, and reports the release. Stop the work first.
    ///
    /// # Errors
    /// Those of [`Guard::release`](super::Guard::release), if the candidate leads; otherwise none.
    pub fn resign(mut self) -> Result<(), ReleaseError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ReleaseError> {
        match self.candidacy.take() {
            Some(candidacy) => self.driver.run(candidacy.resign()),
            None => Ok(()),
        }
    }
}

impl Drop for Candidacy {
    fn drop(&mut self) {
        // A release that is not confirmed continues on the thread of the client.
        let _ = self.end();
    }
}
