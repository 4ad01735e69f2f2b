//! The operations, each one future.
//!
//! | module | subject |
//! |---|---|
//! | `acquire` | one acquisition by a user, from the first try to the guard |
//! | `queue` | waiters of this process for the same lock, one of which polls the attempt |
//! | `attempt` | rounds of requests until the lock is won or given up |
//! | `inquiry` | a request to the members of a hold, and the tally of their answers |
//! | `confirm`, `release` | the two uses of an inquiry |
//! | `holders` | who holds a lock, for the error of a wait |
//! | `pass` | a hold continues with another caller of this client |
//! | `hand_over` | a hold ends here and continues in another client |

pub(crate) mod acquire;
pub(crate) mod queue;

pub(crate) mod attempt;
pub(crate) mod confirm;
pub(crate) mod release;

pub(crate) mod hand_over;
pub(crate) mod holders;
pub(crate) mod pass;

pub(crate) mod inquiry;
