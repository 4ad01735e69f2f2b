//! The decisions of a distributed lock, as pure state machines.
//!
//! **A lock is a threshold over members.** A lock on one node needs 1 of 1, a lock on a majority of nodes needs
//! N/2+1 of N, several locks taken together need each of them. One tally, one round, one set of terms and one renewal
//! serve them all.
//!
//! Nothing here waits, sends, reads a clock or draws a random number: time and randomness are inputs, and every
//! machine is a value (`Clone + Hash + Eq + Debug`) that a model checker can hold. The crate has no dependency. The
//! crate `quorlock` drives these machines; `quorlock-redis` carries their requests to a server.
//!
//! | to read | see |
//! |---|---|
//! | what is asked of a node and what it answers | [`message`] |
//! | in which ways a name can be locked | [`mode`] |
//! | what a node does with it, exactly | [`node`] |
//! | which names belong to others | [`reserved`] |
//! | the parts of a node that is divided | [`slot`] |
//! | how a request gets there, and why it may not | [`transport`], [`failure`] |
//! | when a quorum is won or lost | [`quorum`], [`round`] |
//! | how long the holder may believe | [`lease`] |
//! | trying again, and when | [`acquisition`], [`backoff`] |
//! | keeping a lock | [`renewal`] |
//! | giving it back, and what must be cleaned up | [`release`], [`orphan`] |
//! | whose votes count | [`marker`], [`trust`] |
//! | leases that trust no node's clock | [`claim_version`] |
//! | tokens that a resource can check | [`fencing`] |

pub mod acquisition;
pub mod backoff;
pub mod claim_version;
pub mod failure;
pub mod fencing;
pub mod lease;
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
pub mod reserved;
pub mod round;
pub mod slot;
pub mod time;
pub mod transport;
pub mod trust;
