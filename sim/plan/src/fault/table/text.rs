//! The textual form of faults in files: a kind, and the fields of the fault next to it.

#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::row::Length;
use super::{ClientFault, Kind, LinkFault, NodeFault, NodesFault};
use crate::fault::detail::{Direction, Handover, InFlight, ServerError, Suspended};
use crate::fault::target::ClientTarget;
use crate::fault::trigger::{MessageText, Repeats, Trigger};
use crate::fault::{Fault, FaultKind};
use crate::time::{ClockStep, SimTime};

macro_rules! fields {
    ($($name:ident: $type:ty,)*) => {
        /// The kind of a fault, and the fields of faults of all kinds, in the order in which they are written.
        #[derive(Clone, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(in crate::fault) struct FaultText {
            pub(super) kind: Kind,
            $(
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub(super) $name: Option<$type>,
            )*
        }

        /// A field of faults.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[expect(missing_docs, non_camel_case_types, reason = "each has the name of a field in files")]
        pub enum Field {
            $($name,)*
        }

        impl Field {
            /// Returns the name of the field in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Field::$name => stringify!($name),)*
                }
            }
        }

        impl FaultText {
            fn new(kind: Kind) -> Self {
                FaultText { kind, $($name: None,)* }
            }

            /// Returns the name of a field that has a value.
            fn said(&self) -> Option<&'static str> {
                let fields = [$((stringify!($name), self.$name.is_some()),)*];
                fields.into_iter().find(|(_, is_said)| *is_said).map(|(name, _)| name)
            }
        }
    };
}

fields! {
    at: SimTime,
    every: SimTime,
    times: u32,
    until: SimTime,
    lasts: SimTime,
    client: ClientTarget,
    clients: Vec<u16>,
    node: u16,
    to: u16,
    nodes: Vec<u16>,
    direction: Direction,
    of_million: u32,
    min: SimTime,
    max: SimTime,
    in_flight: InFlight,
    nth: u32,
    clock: Suspended,
    rate_ppm: i32,
    by: String,
    name: u16,
    error: ServerError,
    // For slow replication to all replicas, JSON has `null` here.
    replica: Option<u16>,
    left_behind: Vec<u16>,
    sentinel: u16,
    sentinels: Vec<u16>,
    restart_after: SimTime,
    loses: SimTime,
    rejoin_after: SimTime,
    gap: SimTime,
    how: Handover,
    // TOML requires tables after all plain values.
    after: MessageText,
}

/// Takes the value of a field that a fault of this kind must have.
macro_rules! need {
    ($text:ident.$field:ident) => {
        $text
            .$field
            .take()
            .ok_or_else(|| $text.needs(stringify!($field)))?
    };
}

/// The form of the value of a field in files.
pub(super) trait InText<Text>: Sized {
    /// Reads the value, if there is one.
    fn read(text: Option<Text>) -> Result<Option<Self>, String>;

    fn write(self) -> Option<Text>;
}

impl<T> InText<T> for T {
    fn read(text: Option<T>) -> Result<Option<T>, String> {
        Ok(text)
    }

    fn write(self) -> Option<T> {
        Some(self)
    }
}

impl InText<String> for SimTime {
    fn read(text: Option<String>) -> Result<Option<Self>, String> {
        text.map(|text| parsed(&text)).transpose()
    }

    fn write(self) -> Option<String> {
        Some(self.to_string())
    }
}

impl InText<String> for ClockStep {
    fn read(text: Option<String>) -> Result<Option<Self>, String> {
        text.map(|text| parsed(&text)).transpose()
    }

    fn write(self) -> Option<String> {
        Some(self.to_string())
    }
}

impl InText<Option<u16>> for u16 {
    fn read(text: Option<Option<u16>>) -> Result<Option<Self>, String> {
        Ok(text.flatten())
    }

    fn write(self) -> Option<Option<u16>> {
        Some(Some(self))
    }
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| format!("by: {error}"))
}

impl TryFrom<FaultText> for Fault {
    type Error = String;

    fn try_from(mut text: FaultText) -> Result<Self, String> {
        let when = text.when()?;
        let lasts = match text.kind.row().length {
            Length::None => SimTime::ZERO,
            Length::Lasts => need!(text.lasts),
            Length::RestartAfter => need!(text.restart_after),
            Length::RejoinAfter => need!(text.rejoin_after),
        };
        let what = text.take()?;
        match text.said() {
            None => Ok(Fault { when, lasts, what }),
            Some(field) => Err(text.lacks(field)),
        }
    }
}

impl From<Fault> for FaultText {
    fn from(fault: Fault) -> Self {
        let mut text = FaultText::new(fault.kind());
        text.say_when(fault.when);
        match text.kind.row().length {
            Length::None => {}
            Length::Lasts => text.lasts = Some(fault.lasts),
            Length::RestartAfter => text.restart_after = Some(fault.lasts),
            Length::RejoinAfter => text.rejoin_after = Some(fault.lasts),
        }
        text.say_what(fault.what);
        text
    }
}

impl FaultText {
    pub(super) fn needs(&self, field: &str) -> String {
        let kind = self.kind.name();
        format!("a fault of kind `{kind}` needs the field `{field}`")
    }

    fn lacks(&self, field: &str) -> String {
        let kind = self.kind.name();
        format!("a fault of kind `{kind}` has no field `{field}`")
    }

    /// Returns when the fault begins. Without a time, messages are counted from the beginning of the run.
    fn when(&mut self) -> Result<Trigger, String> {
        let text = self;
        if let Some(message) = text.after.take() {
            let repeats = [
                ("every", text.every.is_some()),
                ("times", text.times.is_some()),
                ("until", text.until.is_some()),
            ];
            if let Some((field, _)) = repeats.into_iter().find(|(_, is_said)| *is_said) {
                return Err(format!(
                    "a fault after a message happens once: leave out `{field}`, or `after`"
                ));
            }
            let since = text.at.take().unwrap_or_default();
            return message.since(since).map(Trigger::After);
        }
        let first = need!(text.at);
        let repeats = match (text.times.take(), text.until.take()) {
            (None, None) => None,
            (Some(times), None) => Some(Repeats::Times(times)),
            (None, Some(until)) => Some(Repeats::Until(until)),
            (Some(_), Some(_)) => {
                return Err(
                    "set either `times` (how often) or `until` (how long), not both".into(),
                );
            }
        };
        match (text.every.take(), repeats) {
            (None, None) => Ok(Trigger::At(first)),
            (Some(every), Some(repeats)) => Ok(Trigger::Every {
                first,
                every,
                repeats,
            }),
            (Some(_), None) => {
                Err("a fault that repeats needs the field `times` or `until`".into())
            }
            (None, Some(_)) => Err(
                "`times` and `until` need `every`: set the time from one beginning to the next"
                    .into(),
            ),
        }
    }

    /// Returns the fault of links with this text's targets.
    pub(super) fn link(&mut self, fault: LinkFault) -> Result<FaultKind, String> {
        Ok(FaultKind::Link {
            clients: some("client", self.clients.take())?,
            nodes: some("node", self.nodes.take())?,
            direction: match self.kind.direction() {
                Some(direction) => direction,
                None => self.direction.take().unwrap_or_default(),
            },
            fault,
        })
    }

    /// Returns the fault of the client that this text names.
    pub(super) fn client(&mut self, fault: ClientFault) -> Result<FaultKind, String> {
        let text = self;
        let client = need!(text.client);
        Ok(FaultKind::Client { client, fault })
    }

    /// Returns the fault of the node that this text names.
    pub(super) fn node(&mut self, fault: NodeFault) -> Result<FaultKind, String> {
        let text = self;
        Ok(FaultKind::Node {
            node: need!(text.node),
            replica: match text.kind.strikes_replicas() {
                true => text.replica.take().flatten(),
                false => None,
            },
            fault,
        })
    }

    /// Returns the fault of the nodes that this text names.
    pub(super) fn nodes(&mut self, fault: NodesFault) -> Result<FaultKind, String> {
        let nodes = some("node", self.nodes.take())?;
        Ok(FaultKind::Nodes { nodes, fault })
    }

    fn say_when(&mut self, when: Trigger) {
        self.at = Some(when.begins());
        match when {
            Trigger::At(_) => {}
            Trigger::Every { every, repeats, .. } => {
                self.every = Some(every);
                match repeats {
                    Repeats::Times(times) => self.times = Some(times),
                    Repeats::Until(until) => self.until = Some(until),
                }
            }
            Trigger::After(after) => self.after = Some(after.into()),
        }
    }

    fn say_what(&mut self, what: FaultKind) {
        match what {
            FaultKind::Link {
                clients,
                nodes,
                direction,
                fault,
            } => {
                (self.clients, self.nodes) = (Some(clients), Some(nodes));
                self.direction = self.kind.direction().is_none().then_some(direction);
                fault.say(self);
            }
            FaultKind::Client { client, fault } => {
                self.client = Some(client);
                fault.say(self);
            }
            FaultKind::Node {
                node,
                replica,
                fault,
            } => {
                self.node = Some(node);
                self.replica = replica.map(Some);
                fault.say(self);
            }
            FaultKind::Nodes { nodes, fault } => {
                self.nodes = Some(nodes);
                fault.say(self);
            }
        }
        // A slot that is moved without a gap is written as before there were gaps.
        self.gap = self.gap.filter(|gap| SimTime::ZERO < *gap);
    }
}

/// Returns the numbers of a list. A list that is omitted stands for all numbers, and is empty until the plan is known.
fn some(what: &str, numbers: Option<Vec<u16>>) -> Result<Vec<u16>, String> {
    match numbers {
        Some(numbers) if numbers.is_empty() => Err(format!(
            "{what}s: the list is empty: leave `{what}s` out to name all {what}s"
        )),
        numbers => Ok(numbers.unwrap_or_default()),
    }
}
