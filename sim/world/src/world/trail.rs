//! The trail of a run: its events in order, for a comparison with another run of the same plan.

use crate::world::event::Event;

/// An event that has happened.
#[derive(Clone, Copy, Debug)]
pub struct PastEvent {
    /// When it happened, in nanoseconds of true time.
    pub at: u64,
    /// The event.
    pub what: Event,
    /// The hash of everything up to this event and what it caused.
    pub trace: u64,
}

impl PastEvent {
    /// Returns the kind of the event, such as `Request`.
    #[must_use]
    pub fn name(&self) -> String {
        let shown = format!("{:?}", self.what);
        let end = shown.find('(').unwrap_or(shown.len());
        shown.get(..end).unwrap_or_default().to_owned()
    }
}
