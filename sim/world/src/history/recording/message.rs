//! Messages, as an observer of the network sees them.

/// A message between a client and a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The client that sends or receives the message.
    pub client: u16,
    /// The node that sends or receives the message.
    pub node: u16,
    /// The kind of message.
    pub sort: MessageSort,
    /// When the message was sent, in nanoseconds of true time.
    pub sent: u64,
    /// When the message arrived, in nanoseconds of true time, or `None` if it was lost.
    pub arrives: Option<u64>,
    /// The content of the message, in words.
    pub text: String,
}

/// The kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageSort {
    /// A request of a client.
    Request,
    /// An answer that grants the request.
    Yes,
    /// An answer that refuses the request, or an error.
    No,
    /// A wake-up for the waiters of a name.
    Wake,
}
