//! The network between clients and nodes in the lane in which messages are values: calls, their connections,
//! subscriptions, and the returns of nodes.

pub mod calls;
pub mod connections;
pub mod deadlines;
pub mod requests;
pub mod subscriptions;
