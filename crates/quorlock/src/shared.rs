//! The state that the locks of one client share.
//!
//! | module | subject |
//! |---|---|
//! | `client` | what every lock of a client refers to |
//! | `keeper` | the task that renews holds and cleans up after them |
//! | `hold` | one hold: its claims, its validity, its requests in flight |
//! | `layout` | the nodes that are the members of a lock, in groups |
//! | `trust` | what this client has observed of each node |
//! | `party` | the settings of a client for its nodes, also in locks of other clients |
//! | `wake_ups`, `contended` | subscriptions of acquisitions, and what is remembered of contended locks |
//! | `alarm`, `calls`, `under`, `waiters` | parts of the above |

pub(crate) mod client;
pub(crate) mod keeper;

pub(crate) mod hold;

pub(crate) mod contended;
pub(crate) mod layout;
pub(crate) mod wake_ups;

pub(crate) mod trust;

pub(crate) mod alarm;
pub(crate) mod calls;
pub(crate) mod party;
pub(crate) mod seen_tokens;
pub(crate) mod under;
pub(crate) mod waiters;
