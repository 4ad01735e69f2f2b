//! Messages, as a listener on the wire sees them.

/// One message between a client and a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Of which client, or to it.
    pub client: u16,
    /// To which node, or from it.
    pub node: u16,
    /// What kind of message.
    pub sort: MessageSort,
    /// When it left.
    pub sent: u64,
    /// When it arrived; `None` if it was lost.
    pub arrives: Option<u64>,
    /// What it says.
    pub text: String,
}

/// What kind of message it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageSort {
    /// From a client.
    Request,
    /// An answer that gives what was asked.
    Yes,
    /// An answer that does not, or an error.
    No,
    /// To the waiters for a name.
    Wake,
}
