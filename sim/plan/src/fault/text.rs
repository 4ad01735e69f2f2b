//! The textual form of faults in files: a kind, and the fields of the fault next to it.

#[cfg(test)]
mod tests;
mod written;

use serde::{Deserialize, Serialize};

use super::{
    ClientFault, ClientTarget, Direction, Fault, FaultKind, Handover, InFlight, Kind, LinkFault,
    NodeFault, Repeats, ServerError, Suspended, Trigger, trigger::MessageText,
};
use crate::time::SimTime;

macro_rules! fields {
    ($($name:ident: $type:ty,)*) => {
        /// The kind of a fault, and the fields of faults of all kinds, in the order in which they are written.
        #[derive(Clone, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct FaultText {
            kind: Kind,
            $(#[serde(default, skip_serializing_if = "Option::is_none")] $name: Option<$type>,)*
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

/// The field that holds the length of a fault.
enum Length {
    /// No field, because the fault happens once or is permanent.
    None,
    Lasts,
    RestartAfter,
    RejoinAfter,
}

impl Length {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Reset
            | Kind::Swallow
            | Kind::Cancel
            | Kind::ClientRate
            | Kind::ClientStep
            | Kind::Flush
            | Kind::Evict
            | Kind::ForgetScripts
            | Kind::NodeRate
            | Kind::NodeStep
            | Kind::Backup
            | Kind::FreeBacklog
            | Kind::SentinelFailover
            | Kind::ClusterFailover => Length::None,
            Kind::CrashClient | Kind::CrashNode | Kind::PowerLoss | Kind::CrashSentinel => {
                Length::RestartAfter
            }
            Kind::Failover => Length::RejoinAfter,
            Kind::Cut
            | Kind::Loss
            | Kind::Delay
            | Kind::HoldBack
            | Kind::Duplicate
            | Kind::Reorder
            | Kind::PauseClient
            | Kind::PauseInside
            | Kind::SuspendClient
            | Kind::PauseNode
            | Kind::ServerError
            | Kind::RevokeKeys
            | Kind::SlowReplication
            | Kind::IsolatePrimary
            | Kind::PauseSentinel
            | Kind::StaleSentinel
            | Kind::StopInside
            | Kind::StallNode
            | Kind::Misroute
            | Kind::MigrateSlot => Length::Lasts,
        }
    }
}

impl TryFrom<FaultText> for Fault {
    type Error = String;

    fn try_from(mut text: FaultText) -> Result<Self, String> {
        let when = text.when()?;
        let lasts = match Length::of(text.kind) {
            Length::None => SimTime::ZERO,
            Length::Lasts => need!(text.lasts),
            Length::RestartAfter => need!(text.restart_after),
            Length::RejoinAfter => need!(text.rejoin_after),
        };
        let what = text.what()?;
        match text.said() {
            None => Ok(Fault { when, lasts, what }),
            Some(field) => Err(text.lacks(field)),
        }
    }
}

impl FaultText {
    fn needs(&self, field: &str) -> String {
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

    fn what(&mut self) -> Result<FaultKind, String> {
        let text = self;
        Ok(match text.kind {
            Kind::Cut => text.link(LinkFault::Cut)?,
            Kind::Loss => {
                let of_million = need!(text.of_million);
                text.link(LinkFault::Loss { of_million })?
            }
            Kind::Delay => {
                let (min, max) = (need!(text.min), need!(text.max));
                text.link(LinkFault::Delay { min, max })?
            }
            Kind::HoldBack => text.link(LinkFault::HoldBack)?,
            Kind::Duplicate => FaultKind::Link {
                clients: some("client", text.clients.take())?,
                nodes: some("node", text.nodes.take())?,
                direction: Direction::ToNode,
                fault: LinkFault::Duplicate {
                    of_million: need!(text.of_million),
                    max: need!(text.max),
                },
            },
            Kind::Reorder => {
                let max = need!(text.max);
                text.link(LinkFault::Reorder { max })?
            }
            Kind::Reset => FaultKind::Link {
                clients: some("client", text.clients.take())?,
                nodes: some("node", text.nodes.take())?,
                direction: Direction::Both,
                fault: LinkFault::Reset {
                    in_flight: text.in_flight.take().unwrap_or_default(),
                },
            },
            Kind::Swallow => FaultKind::Link {
                clients: some("client", text.clients.take())?,
                nodes: some("node", text.nodes.take())?,
                direction: Direction::Both,
                fault: LinkFault::Swallow,
            },
            Kind::PauseClient => text.client(ClientFault::Pause)?,
            Kind::PauseInside => {
                let nth = need!(text.nth);
                text.client(ClientFault::PauseInside { nth })?
            }
            Kind::StopInside => {
                let nth = need!(text.nth);
                text.client(ClientFault::StopInside { nth })?
            }
            Kind::CrashClient => text.client(ClientFault::Crash)?,
            Kind::SuspendClient => {
                let clock = need!(text.clock);
                text.client(ClientFault::Suspend { clock })?
            }
            Kind::Cancel => {
                let nth = need!(text.nth);
                text.client(ClientFault::Cancel { nth })?
            }
            Kind::ClientRate => {
                let rate_ppm = need!(text.rate_ppm);
                text.client(ClientFault::Rate { rate_ppm })?
            }
            Kind::ClientStep => {
                let by = parsed(&need!(text.by))?;
                text.client(ClientFault::Step { by })?
            }
            Kind::Backup => FaultKind::Backup {
                nodes: some("node", text.nodes.take())?,
            },
            Kind::PauseNode
            | Kind::CrashNode
            | Kind::Flush
            | Kind::Evict
            | Kind::ServerError
            | Kind::ForgetScripts
            | Kind::NodeRate
            | Kind::NodeStep
            | Kind::SlowReplication
            | Kind::PowerLoss
            | Kind::Failover
            | Kind::IsolatePrimary
            | Kind::SentinelFailover
            | Kind::CrashSentinel
            | Kind::PauseSentinel
            | Kind::StaleSentinel
            | Kind::StallNode
            | Kind::FreeBacklog
            | Kind::Misroute
            | Kind::MigrateSlot
            | Kind::ClusterFailover
            | Kind::RevokeKeys => FaultKind::Node {
                node: need!(text.node),
                replica: match text.kind.strikes_replicas() {
                    true => text.replica.take().flatten(),
                    false => None,
                },
                fault: text.node_fault()?,
            },
        })
    }

    fn node_fault(&mut self) -> Result<NodeFault, String> {
        let text = self;
        Ok(match text.kind {
            Kind::PauseNode => NodeFault::Pause,
            Kind::CrashNode => NodeFault::Crash,
            Kind::PowerLoss => NodeFault::PowerLoss {
                loses: need!(text.loses),
            },
            Kind::Flush => NodeFault::Flush,
            Kind::Evict => NodeFault::Evict {
                name: need!(text.name),
            },
            Kind::RevokeKeys => NodeFault::RevokeKeys {
                name: need!(text.name),
            },
            Kind::ServerError => NodeFault::Error {
                error: need!(text.error),
            },
            Kind::ForgetScripts => NodeFault::ForgetScripts,
            Kind::NodeRate => NodeFault::Rate {
                rate_ppm: need!(text.rate_ppm),
            },
            Kind::NodeStep => NodeFault::Step {
                by: parsed(&need!(text.by))?,
            },
            Kind::SlowReplication => NodeFault::SlowReplication {
                by: parsed(&need!(text.by))?,
                replica: text.replica.take().flatten(),
            },
            Kind::Failover => NodeFault::Failover {
                replica: need!(text.replica).ok_or_else(|| text.needs("replica"))?,
                left_behind: text.left_behind.take().unwrap_or_default(),
            },
            Kind::IsolatePrimary => NodeFault::IsolatePrimary {
                clients: need!(text.clients),
                sentinels: need!(text.sentinels),
            },
            Kind::SentinelFailover => NodeFault::SentinelFailover,
            Kind::CrashSentinel => NodeFault::CrashSentinel {
                sentinel: need!(text.sentinel),
            },
            Kind::PauseSentinel => NodeFault::PauseSentinel {
                sentinel: need!(text.sentinel),
            },
            Kind::StaleSentinel => NodeFault::StaleSentinel {
                sentinel: need!(text.sentinel),
            },
            Kind::StallNode => NodeFault::Stall {
                nth: need!(text.nth),
            },
            Kind::FreeBacklog => NodeFault::FreeBacklog,
            Kind::Misroute => NodeFault::Misroute {
                clients: need!(text.clients),
                to: need!(text.to),
            },
            Kind::MigrateSlot => NodeFault::MigrateSlot {
                name: need!(text.name),
                to: need!(text.to),
                gap: text.gap.take().unwrap_or_default(),
            },
            Kind::ClusterFailover => NodeFault::ClusterFailover {
                how: text.how.take().unwrap_or_default(),
            },
            kind => return Err(format!("`{}` is not a fault of a node", kind.name())),
        })
    }

    fn link(&mut self, fault: LinkFault) -> Result<FaultKind, String> {
        let text = self;
        Ok(FaultKind::Link {
            clients: some("client", text.clients.take())?,
            nodes: some("node", text.nodes.take())?,
            direction: text.direction.take().unwrap_or_default(),
            fault,
        })
    }

    fn client(&mut self, fault: ClientFault) -> Result<FaultKind, String> {
        let text = self;
        Ok(FaultKind::Client {
            client: need!(text.client),
            fault,
        })
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| format!("by: {error}"))
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
