//! A violation of a property in a run on real servers.

use serde::{Deserialize, Serialize};

/// The first violation of a property.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Break {
    /// When the violation happened, in seconds since the clients were started, some time before the run began.
    pub(crate) after: f64,
    /// A sentence that describes the violation.
    pub(crate) story: String,
}
