//! Leader election: one of several candidates leads, and its term is a fencing token.

mod candidacy;
mod candidate;
mod leadership;
mod observer;

pub use candidacy::{Candidacy, LeaderEvent};
pub use candidate::Candidate;
pub use leadership::Leadership;
pub use observer::{LeaderObserver, LeaderView};
