//! Faults as files say them: a kind, and its fields side by side.

mod written;

use serde::{Deserialize, Serialize};

use super::{
    ClientFault, Direction, Fault, FaultKind, InFlight, Kind, LinkFault, NodeFault, ServerError,
    Suspended,
};
use crate::plan::time::Span;

macro_rules! fields {
    ($($name:ident: $type:ty,)*) => {
        /// The kind of a fault, and every field that a fault of any kind has, in the order in which they are written.
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

            /// A field that is said.
            fn said(&self) -> Option<&'static str> {
                let fields = [$((stringify!($name), self.$name.is_some()),)*];
                fields.into_iter().find(|(_, is_said)| *is_said).map(|(name, _)| name)
            }
        }
    };
}

fields! {
    at: Span,
    lasts: Span,
    client: u16,
    clients: Vec<u16>,
    node: u16,
    to: u16,
    nodes: Vec<u16>,
    direction: Direction,
    of_million: u32,
    least: Span,
    most: Span,
    in_flight: InFlight,
    nth: u32,
    clock: Suspended,
    rate_ppm: i32,
    by: String,
    name: u16,
    error: ServerError,
    // Slow replication to all replicas is written as JSON's null.
    replica: Option<u16>,
    left_behind: Vec<u16>,
    sentinel: u16,
    sentinels: Vec<u16>,
    restart_after: Span,
    loses: Span,
    rejoin_after: Span,
}

/// Takes a field that a fault of this kind must have.
macro_rules! need {
    ($text:ident.$field:ident) => {
        $text
            .$field
            .take()
            .ok_or_else(|| $text.needs(stringify!($field)))?
    };
}

/// The field that says how long a fault lasts.
enum Length {
    /// It happens once, or stays.
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
            | Kind::SentinelFailover => Length::None,
            Kind::CrashClient | Kind::CrashNode | Kind::PowerLoss | Kind::CrashSentinel => {
                Length::RestartAfter
            }
            Kind::Failover => Length::RejoinAfter,
            _ => Length::Lasts,
        }
    }
}

impl TryFrom<FaultText> for Fault {
    type Error = String;

    fn try_from(mut text: FaultText) -> Result<Self, String> {
        let at = need!(text.at);
        let lasts = match Length::of(text.kind) {
            Length::None => Span::ZERO,
            Length::Lasts => need!(text.lasts),
            Length::RestartAfter => need!(text.restart_after),
            Length::RejoinAfter => need!(text.rejoin_after),
        };
        let what = text.what()?;
        match text.said() {
            None => Ok(Fault { at, lasts, what }),
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

    fn what(&mut self) -> Result<FaultKind, String> {
        let text = self;
        Ok(match text.kind {
            Kind::Cut => text.link(LinkFault::Cut)?,
            Kind::Loss => {
                let of_million = need!(text.of_million);
                text.link(LinkFault::Loss { of_million })?
            }
            Kind::Delay => {
                let (least, most) = (need!(text.least), need!(text.most));
                text.link(LinkFault::Delay { least, most })?
            }
            Kind::HoldBack => text.link(LinkFault::HoldBack)?,
            Kind::Duplicate => FaultKind::Link {
                clients: need!(text.clients),
                nodes: need!(text.nodes),
                direction: Direction::ToNode,
                fault: LinkFault::Duplicate {
                    of_million: need!(text.of_million),
                    most: need!(text.most),
                },
            },
            Kind::Reorder => {
                let most = need!(text.most);
                text.link(LinkFault::Reorder { most })?
            }
            Kind::Reset => FaultKind::Link {
                clients: need!(text.clients),
                nodes: need!(text.nodes),
                direction: Direction::Both,
                fault: LinkFault::Reset {
                    in_flight: text.in_flight.take().unwrap_or_default(),
                },
            },
            Kind::Swallow => FaultKind::Link {
                clients: need!(text.clients),
                nodes: need!(text.nodes),
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
                nodes: need!(text.nodes),
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
            | Kind::Misroute => FaultKind::Node {
                node: need!(text.node),
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
            kind => return Err(format!("`{}` is no fault of a node", kind.name())),
        })
    }

    fn link(&mut self, fault: LinkFault) -> Result<FaultKind, String> {
        let text = self;
        Ok(FaultKind::Link {
            clients: need!(text.clients),
            nodes: need!(text.nodes),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Fault, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    /// One fault of every kind, with every field that its kind has.
    const COMPLETE: [&str; 36] = [
        "kind = 'cut'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'both'",
        "kind = 'loss'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'to-node'\nof_million = 3",
        "kind = 'delay'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'to-client'\nleast = '3ms'\nmost = '4ms'",
        "kind = 'hold-back'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'both'",
        "kind = 'duplicate'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\nof_million = 3\nmost = '4ms'",
        "kind = 'reorder'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'both'\nmost = '4ms'",
        "kind = 'reset'\nat = '1s'\nclients = [0]\nnodes = [1]\nin_flight = 'executed'",
        "kind = 'pause-client'\nat = '1s'\nlasts = '2s'\nclient = 0",
        "kind = 'pause-inside'\nat = '1s'\nlasts = '2s'\nclient = 0\nnth = 7",
        "kind = 'crash-client'\nat = '1s'\nclient = 0\nrestart_after = '2s'",
        "kind = 'suspend-client'\nat = '1s'\nlasts = '2s'\nclient = 0\nclock = 'stops'",
        "kind = 'cancel'\nat = '1s'\nclient = 0\nnth = 7",
        "kind = 'client-rate'\nat = '1s'\nclient = 0\nrate_ppm = -5",
        "kind = 'client-step'\nat = '1s'\nclient = 0\nby = '-3s'",
        "kind = 'pause-node'\nat = '1s'\nlasts = '2s'\nnode = 1",
        "kind = 'crash-node'\nat = '1s'\nnode = 1\nrestart_after = '2s'",
        "kind = 'flush'\nat = '1s'\nnode = 1",
        "kind = 'evict'\nat = '1s'\nnode = 1\nname = 2",
        "kind = 'server-error'\nat = '1s'\nlasts = '2s'\nnode = 1\nerror = 'busy'",
        "kind = 'forget-scripts'\nat = '1s'\nnode = 1",
        "kind = 'node-rate'\nat = '1s'\nnode = 1\nrate_ppm = 5",
        "kind = 'node-step'\nat = '1s'\nnode = 1\nby = '3s'",
        "kind = 'slow-replication'\nat = '1s'\nlasts = '2s'\nnode = 1\nby = '3s'\nreplica = 0",
        "kind = 'failover'\nat = '1s'\nnode = 1\nreplica = 0\nleft_behind = [2]\nrejoin_after = '2s'",
        "kind = 'backup'\nat = '1s'\nnodes = [1, 2]",
        "kind = 'isolate-primary'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnode = 1\nsentinels = [2]",
        "kind = 'sentinel-failover'\nat = '1s'\nnode = 1",
        "kind = 'crash-sentinel'\nat = '1s'\nnode = 1\nsentinel = 2\nrestart_after = '2s'",
        "kind = 'pause-sentinel'\nat = '1s'\nlasts = '2s'\nnode = 1\nsentinel = 2",
        "kind = 'stale-sentinel'\nat = '1s'\nlasts = '2s'\nnode = 1\nsentinel = 2",
        "kind = 'stop-inside'\nat = '1s'\nlasts = '2s'\nclient = 0\nnth = 7",
        "kind = 'power-loss'\nat = '1s'\nnode = 1\nrestart_after = '2s'\nloses = '3s'",
        "kind = 'swallow'\nat = '1s'\nclients = [0]\nnodes = [1]",
        "kind = 'stall-node'\nat = '1s'\nlasts = '2s'\nnode = 1\nnth = 7",
        "kind = 'free-backlog'\nat = '1s'\nnode = 1",
        "kind = 'misroute'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnode = 1\nto = 2",
    ];

    fn name_of(line: &str) -> &str {
        line.split(' ').next().unwrap_or_default()
    }

    #[test]
    fn a_fault_of_every_kind_is_written_as_it_was_read() {
        for (text, kind) in COMPLETE.into_iter().zip(Kind::ALL) {
            let fault = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(fault.kind(), kind);
            let written = toml::to_string(&fault).unwrap();
            assert_eq!(written.trim_end().replace('"', "'"), text);
        }
    }

    #[test]
    fn a_field_that_is_missing_is_named() {
        let optional = ["direction", "in_flight", "left_behind"];
        for (text, kind) in COMPLETE.into_iter().zip(Kind::ALL) {
            let lines: Vec<&str> = text.lines().collect();
            for missing in lines.iter().skip(1) {
                let rest: Vec<&str> = lines.iter().copied().filter(|l| l != missing).collect();
                let (field, kind_name) = (name_of(missing), kind.name());
                let is_optional = optional.contains(&field)
                    || (kind == Kind::SlowReplication && field == "replica");
                let told = read(&rest.join("\n"));
                if is_optional {
                    assert!(told.is_ok(), "{kind_name} without {field}: {told:?}");
                } else {
                    let expected =
                        format!("a fault of kind `{kind_name}` needs the field `{field}`");
                    assert_eq!(told, Err(expected));
                }
            }
        }
    }

    #[test]
    fn a_field_that_the_kind_does_not_have_is_refused_by_name() {
        let mut refused = 0;
        for (text, kind) in COMPLETE.into_iter().zip(Kind::ALL) {
            let own: Vec<&str> = text.lines().map(name_of).collect();
            for foreign in COMPLETE.iter().flat_map(|text| text.lines()) {
                let field = name_of(foreign);
                if own.contains(&field) {
                    continue;
                }
                let kind_name = kind.name();
                let expected = format!("a fault of kind `{kind_name}` has no field `{field}`");
                assert_eq!(read(&format!("{text}\n{foreign}")), Err(expected));
                refused += 1;
            }
        }
        assert!(1_000 < refused, "{refused}");
    }

    #[test]
    fn a_field_of_no_kind_and_a_kind_that_there_is_not_are_refused() {
        let told = |text: &str| read(text).unwrap_err();
        let field = told("kind = 'flush'\nat = '1s'\nnode = 1\ncolour = 3");
        assert!(field.starts_with("unknown field `colour`"), "{field}");
        let kind = told("kind = 'flood'\nat = '1s'\nnode = 1");
        assert!(kind.starts_with("unknown variant `flood`"), "{kind}");
        let by = told("kind = 'node-step'\nat = '1s'\nnode = 1\nby = 'much'");
        assert_eq!(
            by,
            "by: \"much\" is no span of time: write for example 40us, 250ms or 1.5s"
        );
    }
}
