//! The advice for a deployment.

use std::time::Duration;

use super::table::{Clocks, Deployment, Evidence, Expected, Failover, Kind, Question, Resource};

/// The lease that fits most cases.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// The longest lease of a deployment by default.
const DEFAULT_LONGEST: Duration = Duration::from_secs(60);

/// What is said about a deployment.
#[derive(Debug)]
pub(super) struct Advice {
    pub(super) deployment: &'static Deployment,
    /// What breaks the lock or keeps it from being granted.
    pub(super) breaks: Vec<&'static Evidence>,
    /// What does not.
    pub(super) holds: Vec<&'static Evidence>,
    pub(super) nodes: String,
    pub(super) lease: String,
    /// Lines for the file of `--config`.
    pub(super) settings: Vec<String>,
    /// Lines for each server, and the program that they are for.
    pub(super) servers: Vec<&'static str>,
    pub(super) fencing: &'static str,
    pub(super) pages: Vec<&'static str>,
}

impl Advice {
    pub(super) fn on(question: &Question) -> Advice {
        let deployment = question.kind.deployment();
        let evidence = deployment.evidence.iter().copied().flatten();
        let (holds, breaks) = evidence
            .filter(|evidence| evidence.applies_to(question))
            .partition(|evidence| evidence.expected == Expected::Holds);
        let lease = lease(question.survive);
        let mut pages = deployment.pages.to_vec();
        pages.extend(["explanation/leases.md#which-lease-to-choose", "fencing.md"]);
        Advice {
            deployment,
            breaks,
            holds,
            nodes: nodes(question),
            lease: about_lease(question.survive, lease),
            settings: settings(question, lease),
            servers: servers(question),
            fencing: fencing(question),
            pages,
        }
    }
}

/// A holder that is cut off keeps its lock for about two thirds of its lease.
fn lease(survive: Option<Duration>) -> Duration {
    let Some(survive) = survive else {
        return DEFAULT_LEASE;
    };
    let millis = survive.as_millis().saturating_mul(3).div_ceil(2);
    let seconds = u64::try_from(millis.div_ceil(1_000)).unwrap_or(u64::MAX);
    Duration::from_secs(seconds.max(1))
}

fn about_lease(survive: Option<Duration>, lease: Duration) -> String {
    match survive {
        None => "30s, the default, renewed every third of it. A holder that is cut off loses its lock after about two thirds; \
                 a name whose holder died is free after the lease"
            .to_owned(),
        Some(survive) => format!(
            "{lease:?}: about two thirds of it, {survive:?}, pass before a holder that is cut off loses its lock. A name whose holder died is free after \
             the lease"
        ),
    }
}

fn nodes(question: &Question) -> String {
    let servers = question.servers;
    if question.kind.is_majority() {
        let needed = servers / 2 + 1;
        let spare = servers - needed;
        let advice = match servers {
            2 => "; take three, of which one may fail",
            _ if servers.is_multiple_of(2) => ", as with one less: take an odd number",
            _ => "",
        };
        return match spare {
            0 => format!("{servers}: a lock needs {needed}, and none may fail{advice}"),
            _ => format!("{servers}: a lock needs {needed}, and {spare} may fail{advice}"),
        };
    }
    match question.kind {
        Kind::Etcd => "1 cluster of three members, of which one may fail",
        Kind::File => "1, on the machine of the programs",
        _ => "1: it must be up. If no single failure may stop the lock, take a majority of three that fail independently",
    }
    .to_owned()
}

fn settings(question: &Question, lease: Duration) -> Vec<String> {
    let longest = DEFAULT_LONGEST.max(lease);
    let mut lines = vec![
        format!("lease = \"{}s\"", lease.as_secs()),
        format!("longest_lease = \"{}s\"", longest.as_secs()),
    ];
    let may_be_stepped = question.clocks == Some(Clocks::Stepped);
    let has_clock = !matches!(question.kind, Kind::Etcd);
    if may_be_stepped && has_clock {
        lines.push(format!("clock_margin = \"{}s\"", longest.as_secs()));
    }
    // A counter outlives claim and margin, or the settings are refused.
    let day = Duration::from_secs(24 * 60 * 60);
    if day <= longest * 2 {
        lines.push(format!(
            "token_retention = \"{}s\"",
            (longest * 3).as_secs()
        ));
    }
    lines
}

/// The settings of Redis servers.
fn servers(question: &Question) -> Vec<&'static str> {
    let durable: &[&str] = &["appendonly yes", "appendfsync always"];
    let mut lines = match question.kind {
        Kind::Table | Kind::File | Kind::Etcd => return Vec::new(),
        Kind::Stores => vec!["maxmemory-policy noeviction"],
        _ => [durable, &["maxmemory-policy noeviction"]].concat(),
    };
    match question.kind {
        Kind::Group | Kind::Groups if question.failover != Some(Failover::Managed) => {
            lines.extend(["min-replicas-to-write 1", "min-replicas-max-lag 10"]);
        }
        Kind::Shards => lines.push("cluster-require-full-coverage no"),
        _ => {}
    }
    lines
}

fn fencing(question: &Question) -> &'static str {
    if question.resource == Some(Resource::Cannot) {
        return "the resource cannot compare tokens, so a holder that is suspended in the middle of a write is not stopped: let a lease be longer \
                than the pauses that you expect, and cancel the work at the loss (while_held, quorlock run)";
    }
    match question.kind {
        Kind::Table | Kind::File => {
            "check the hold in the transaction that writes, if what the lock protects is in the same database (check_in); \
             otherwise send the token with every write"
        }
        kind if kind.is_majority() || kind == Kind::Etcd => {
            "send the token with every write, and let the resource compare it: it rejects the write of a holder that was suspended"
        }
        _ => {
            "needed where two holders at once do damage: only a resource that compares tokens makes this deployment safe. Send the token \
             with every write"
        }
    }
}
