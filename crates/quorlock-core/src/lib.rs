//! The decisions of a distributed lock, as pure state machines.
//!
//! **A lock is a threshold over members.** A lock on one node needs 1 of 1, a lock on a majority of nodes needs N/2+1
//! of N, and several locks taken together need every one of them. One tally, one round, one set of terms and one
//! renewal serve all of them.
//!
//! Nothing in this crate waits, sends, reads a clock or draws a random number. Time and randomness are inputs, and
//! every machine is a value (`Clone + Hash + Eq + Debug`) that a model checker can store. The crate has no
//! dependencies. The crate `quorlock` drives these machines; a [transport] carries their requests to a node.
//!
//! | to read | see |
//! |---|---|
//! | requests to a node and its replies | [`message`] |
//! | the modes in which a name can be locked | [`mode`] |
//! | what a node does with a request, exactly | [`node`] |
//! | the slots of a node that is divided | [`slot`] |
//! | how a request reaches a node, and why it may fail to | [`transport`], [`failure`] |
//! | a transport that loses, delays or counts requests in a test | [`intercept`] |
//! | when a quorum is won or lost | [`quorum`], [`round`] |
//! | how long the holder may rely on its lock | [`lease`] |
//! | when to try again | [`acquisition`], [`backoff`] |
//! | renewing a lock | [`renewal`] |
//! | releasing a lock, and cleaning up claims that may be left behind | [`release`], [`orphan`] |
//! | which nodes' votes count | [`marker`], [`trust`] |
//! | leases that do not depend on a node's clock | [`claim_version`] |
//! | tokens that a resource can check | [`fencing`] |

pub mod acquisition;
pub mod backoff;
pub mod claim_version;
pub mod failure;
pub mod fencing;
pub mod intercept;
pub mod lease;
pub mod longest_lease;
pub mod marker;
pub mod message;
pub mod mode;
pub mod name;
pub mod node;
pub mod orphan;
pub mod owner;
pub mod quorum;
pub mod release;
pub mod renewal;
pub mod round;
pub mod slot;
pub mod time;
pub mod transport;
pub mod trust;
