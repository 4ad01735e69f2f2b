//! The network between clients and nodes in the lane in which messages are values: calls, their connections,
//! subscriptions, and the returns of nodes.

pub(crate) mod calls;
pub(crate) mod connections;
pub(crate) mod deadlines;
pub(crate) mod requests;
pub(crate) mod subscriptions;
