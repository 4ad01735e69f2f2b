//! Triggers of faults: a time, repeated times, or a message.

use std::fmt;
use std::str::FromStr;

use quorlock::transport::Request;
use serde::{Deserialize, Serialize};

use super::target::ClientTarget;
use crate::time::SimTime;

/// When a fault begins. Times are in true time since the beginning of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// Once, at this time.
    At(SimTime),
    /// Repeatedly. In the run, each repetition is a separate fault.
    Every {
        /// The time of the first repetition.
        first: SimTime,
        /// The time from the beginning of one repetition to the beginning of the next.
        every: SimTime,
        /// When the repetitions end.
        repeats: Repeats,
    },
    /// Once, after a message. The fault does not begin if it cannot end before the run does.
    After(AfterMessage),
}

/// How often a fault repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeats {
    /// The fault repeats this number of times.
    Times(u32),
    /// The fault repeats until this time, exclusive.
    Until(SimTime),
}

/// The n-th message of a kind in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AfterMessage {
    /// The time from which messages are counted.
    pub since: SimTime,
    /// The kind of the request, or of the request that the answer belongs to.
    pub message: MessageKind,
    /// The direction of the message.
    pub towards: Towards,
    /// The client at one end of the message, or `None` for any client.
    pub client: Option<ClientTarget>,
    /// The node at the other end of the message, or `None` for any node.
    pub node: Option<u16>,
    /// The position of the message among the messages that match, from 1.
    pub nth: u32,
    /// The time from the message to the beginning of the fault.
    pub delay: SimTime,
}

/// The direction of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Towards {
    /// From a client to a node: a request. It is counted when the client sends it.
    Node,
    /// From a node to a client: an answer. It is counted when the node sends it.
    Client,
}

/// The kind of a request, or of the request that an answer belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
    /// An acquire of a name.
    Acquire,
    /// A renewal of claims.
    Renew,
    /// A release of a claim, or of a part of it.
    Release,
    /// A query for the owner of a name: the `GET` of the variant `get-then-del`.
    Inspect,
    /// A release of a name, regardless of its owner.
    ForceRelease,
    /// A query for the identity of the node's process.
    Probe,
    /// A read of a record of a store.
    Read,
    /// A write of a record of a store.
    Write,
}

impl MessageKind {
    /// Returns the kind of a request.
    pub const fn of(request: &Request) -> Self {
        match request {
            Request::Acquire(_) => MessageKind::Acquire,
            Request::Renew(_) => MessageKind::Renew,
            Request::Release(_) => MessageKind::Release,
            Request::Inspect(_) => MessageKind::Inspect,
            Request::ForceRelease(_) => MessageKind::ForceRelease,
            Request::Probe(_) => MessageKind::Probe,
        }
    }

    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MessageKind::Acquire => "acquire",
            MessageKind::Renew => "renew",
            MessageKind::Release => "release",
            MessageKind::Inspect => "inspect",
            MessageKind::ForceRelease => "force-release",
            MessageKind::Probe => "probe",
            MessageKind::Read => "read",
            MessageKind::Write => "write",
        }
    }
}

/// The largest number of repetitions.
pub(crate) const MOST_TIMES: u32 = 10_000;

impl Trigger {
    /// Returns the earliest time at which the fault may begin.
    #[must_use]
    pub const fn begins(&self) -> SimTime {
        match self {
            Trigger::At(at) => *at,
            Trigger::Every { first, .. } => *first,
            Trigger::After(after) => after.since,
        }
    }

    /// Returns the times at which the fault begins, if they are known before the run.
    pub fn times(&self) -> impl Iterator<Item = SimTime> + use<> {
        let (first, every, times) = match *self {
            Trigger::At(at) => (at, SimTime::ZERO, 1),
            Trigger::Every {
                first,
                every,
                repeats,
            } => (first, every, repeats.times(first, every)),
            Trigger::After(_) => (SimTime::ZERO, SimTime::ZERO, 0),
        };
        (0..u64::from(times)).map(move |n| first.plus(SimTime::nanos(every.as_nanos() * n)))
    }

    /// Returns the trigger moved to an earlier time.
    #[must_use]
    pub fn sooner(self, by: SimTime) -> Self {
        match self {
            Trigger::At(at) => Trigger::At(at.minus(by)),
            Trigger::Every {
                first,
                every,
                repeats,
            } => Trigger::Every {
                first: first.minus(by),
                every,
                repeats: match repeats {
                    Repeats::Times(times) => Repeats::Times(times),
                    Repeats::Until(until) => Repeats::Until(until.minus(by)),
                },
            },
            Trigger::After(after) => Trigger::After(AfterMessage {
                since: after.since.minus(by),
                ..after
            }),
        }
    }
}

impl Repeats {
    fn times(self, first: SimTime, every: SimTime) -> u32 {
        let times = match self {
            Repeats::Times(times) => u64::from(times),
            Repeats::Until(until) => {
                let room = until.minus(first).as_nanos();
                room.div_ceil(every.as_nanos().max(1))
            }
        };
        u32::try_from(times).unwrap_or(u32::MAX).min(MOST_TIMES)
    }
}

impl From<SimTime> for Trigger {
    fn from(at: SimTime) -> Self {
        Trigger::At(at)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::At(at) => at.fmt(f),
            Trigger::Every {
                first,
                every,
                repeats,
            } => {
                write!(f, "{first} and every {every} ")?;
                match repeats {
                    Repeats::Times(times) => write!(f, "({times} times)"),
                    Repeats::Until(until) => write!(f, "until {until}"),
                }
            }
            Trigger::After(after) => {
                if after.delay != SimTime::ZERO {
                    write!(f, "{} ", after.delay)?;
                }
                let (nth, kind) = (after.nth, after.message.name());
                write!(
                    f,
                    "after {kind} {nth} from {} to {}",
                    after.from(),
                    after.to()
                )?;
                match after.since {
                    SimTime::ZERO => Ok(()),
                    since => write!(f, " since {since}"),
                }
            }
        }
    }
}

impl AfterMessage {
    /// Returns the sender.
    fn from(&self) -> MessageEnd {
        match self.towards {
            Towards::Node => MessageEnd::Client(self.client),
            Towards::Client => MessageEnd::Node(self.node),
        }
    }

    /// Returns the receiver.
    fn to(&self) -> MessageEnd {
        match self.towards {
            Towards::Node => MessageEnd::Node(self.node),
            Towards::Client => MessageEnd::Client(self.client),
        }
    }
}

/// One end of a message. Written as `client`, `client 0`, `holder`, `node` or `node 2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MessageEnd {
    Client(Option<ClientTarget>),
    Node(Option<u16>),
}

impl fmt::Display for MessageEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageEnd::Client(None) => f.write_str("client"),
            MessageEnd::Client(Some(target)) => target.fmt(f),
            MessageEnd::Node(None) => f.write_str("node"),
            MessageEnd::Node(Some(node)) => write!(f, "node {node}"),
        }
    }
}

impl FromStr for MessageEnd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let role = match text {
            "client" => Some(MessageEnd::Client(None)),
            "node" => Some(MessageEnd::Node(None)),
            text => match text.strip_prefix("node ") {
                Some(node) => node.parse().ok().map(|node| MessageEnd::Node(Some(node))),
                None => text
                    .parse()
                    .ok()
                    .map(|target| MessageEnd::Client(Some(target))),
            },
        };
        role.ok_or_else(|| {
            format!(
                "{text:?} is not the end of a message: write client, client 0, holder, holder of 1, node or node 2"
            )
        })
    }
}

/// The textual form of a message in files: `{ message = "release", from = "client 0", to = "node 2", nth = 2, delay =
/// "1ms" }`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::fault) struct MessageText {
    message: MessageKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(default = "first")]
    nth: u32,
    #[serde(default)]
    delay: SimTime,
}

fn first() -> u32 {
    1
}

impl From<AfterMessage> for MessageText {
    fn from(after: AfterMessage) -> Self {
        MessageText {
            message: after.message,
            from: Some(after.from().to_string()),
            to: Some(after.to().to_string()),
            nth: after.nth,
            delay: after.delay,
        }
    }
}

impl MessageText {
    /// Converts the text to a trigger that counts messages from this time on.
    pub(in crate::fault) fn since(self, since: SimTime) -> Result<AfterMessage, String> {
        let role = |field: &str, text: Option<&str>| {
            let role = text.map(str::parse::<MessageEnd>).transpose();
            role.map_err(|why| format!("after.{field}: {why}"))
        };
        let (from, to) = (
            role("from", self.from.as_deref())?,
            role("to", self.to.as_deref())?,
        );
        let (towards, client, node) = match (from, to) {
            (Some(MessageEnd::Client(client)), Some(MessageEnd::Node(node))) => {
                (Towards::Node, client, node)
            }
            (Some(MessageEnd::Node(node)), Some(MessageEnd::Client(client))) => {
                (Towards::Client, client, node)
            }
            (Some(MessageEnd::Client(client)), None) => (Towards::Node, client, None),
            (None, Some(MessageEnd::Node(node))) => (Towards::Node, None, node),
            (Some(MessageEnd::Node(node)), None) => (Towards::Client, None, node),
            (None, Some(MessageEnd::Client(client))) => (Towards::Client, client, None),
            (None, None) => (Towards::Node, None, None),
            (Some(from), Some(to)) => {
                return Err(format!(
                    "after: no message goes from {from} to {to}: one end is a client, the other one a node"
                ));
            }
        };
        Ok(AfterMessage {
            since,
            message: self.message,
            towards,
            client,
            node,
            nth: self.nth,
            delay: self.delay,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(repeats: Repeats) -> Vec<u64> {
        let trigger = Trigger::Every {
            first: SimTime::millis(10),
            every: SimTime::millis(190),
            repeats,
        };
        trigger
            .times()
            .map(|at| at.as_nanos() / 1_000_000)
            .collect()
    }

    #[test]
    fn repetitions_begin_as_often_as_they_are_told_or_until_a_time() {
        assert_eq!(every(Repeats::Times(3)), [10, 200, 390]);
        assert_eq!(every(Repeats::Until(SimTime::millis(390))), [10, 200]);
        assert_eq!(every(Repeats::Until(SimTime::millis(391))), [10, 200, 390]);
        assert_eq!(every(Repeats::Until(SimTime::millis(5))), [] as [u64; 0]);
    }

    #[test]
    fn ends_of_messages_are_read_as_they_are_told() {
        for text in [
            "client",
            "client 3",
            "holder",
            "holder of 1",
            "node",
            "node 2",
        ] {
            assert_eq!(text.parse::<MessageEnd>().unwrap().to_string(), text);
        }
        assert_eq!(
            "nod 2".parse::<MessageEnd>().unwrap_err(),
            "\"nod 2\" is not the end of a message: write client, client 0, holder, holder of 1, node or node 2"
        );
    }
}
