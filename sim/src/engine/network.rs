//! The network between clients and nodes where messages are values: calls, the connections that carry them, and
//! subscriptions.

pub(crate) mod calls;
pub(crate) mod connections;
pub(crate) mod deadlines;
pub(crate) mod requests;
pub(crate) mod subscriptions;
