//! `quorlock advise`: what a deployment promises, what breaks it, and what to configure.
//!
//! | to read | see |
//! |---|---|
//! | the deployments, and what happens to a lock on each | `table` |
//! | the advice for one of them | `advice` |
//! | how it is shown | `print`, `json` |

mod advice;
mod json;
mod print;
mod table;

use clap::{Args, ValueEnum};

use crate::advise::advice::Advice;
use crate::advise::table::{Clocks, Failover, Kind, Persistence, Question, Resource};
use crate::failure::{Code, Failure};
use crate::messages::Voice;
use crate::operate::print as print_line;
use crate::span::Span;

/// Say what locks on a deployment promise, what breaks them, and what to configure.
///
/// The options describe the deployment; what is left out is answered for every case. Without options, a table of the deployments is printed. The names in
/// parentheses are scenarios of the simulator: `quorlock-sim run S5` shows one. Nothing is sent to any server:
/// `quorlock doctor` examines those that are there.
#[derive(Clone, Debug, Args)]
pub(crate) struct Advise {
    /// What stores the locks.
    #[arg(long, value_enum, value_name = "KIND")]
    store: Option<Store>,
    /// How many servers, groups or stores that fail independently.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    servers: Option<u32>,
    /// What takes the place of a server that fails: nothing, a replica by Sentinel, one by a Redis Cluster, or a replica
    /// behind the same address, as managed services and databases have it.
    #[arg(long, value_enum, value_name = "HOW")]
    failover: Option<Failover>,
    /// What a Redis server keeps when it loses power: appendfsync.
    #[arg(long, value_enum, value_name = "HOW")]
    persistence: Option<Persistence>,
    /// Whether the clocks of servers may be stepped, or are slewed.
    #[arg(long, value_enum, value_name = "HOW")]
    clocks: Option<Clocks>,
    /// Longest outage or pause that a holder is to survive.
    #[arg(long, value_name = "SPAN")]
    survive: Option<Span>,
    /// Whether the resource that the lock protects compares fencing tokens.
    #[arg(long, value_enum, value_name = "HOW")]
    resource: Option<Resource>,
    /// Print the advice as one line of JSON; without other options, one line for each deployment.
    #[arg(long)]
    json: bool,
}

/// What stores the locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Store {
    /// Redis, or Valkey.
    Redis,
    /// A table of PostgreSQL.
    Postgres,
    /// A table of MySQL or MariaDB.
    Mysql,
    /// A file of SQLite.
    Sqlite,
    /// Keys of etcd.
    Etcd,
    /// Several of these.
    Mixed,
}

impl Advise {
    pub(crate) fn run(&self) -> Code {
        let text = match self.question() {
            Ok(None) if self.json => Ok(json::table()),
            Ok(None) => Ok(print::table()),
            Ok(Some(question)) if self.json => Ok(json::advice(&Advice::on(&question))),
            Ok(Some(question)) => Ok(print::advice(&Advice::on(&question))),
            Err(failure) => Err(failure),
        };
        match text.and_then(|text| print_line(text.trim_end())) {
            Ok(()) => Code::SUCCESS,
            Err(failure) => {
                Voice::Text.failure(&failure);
                failure.code
            }
        }
    }

    /// Returns what is asked; nothing without options.
    fn question(&self) -> Result<Option<Question>, Failure> {
        let is_any_set = self.store.is_some()
            || self.servers.is_some()
            || self.failover.is_some()
            || self.persistence.is_some()
            || self.clocks.is_some()
            || self.survive.is_some()
            || self.resource.is_some();
        if !is_any_set {
            return Ok(None);
        }
        let servers = match (self.servers, self.store) {
            (Some(servers), _) => servers,
            (None, Some(Store::Mixed)) => 3,
            (None, _) => 1,
        };
        Ok(Some(Question {
            kind: self.kind(servers)?,
            servers,
            failover: self.failover,
            persistence: self.persistence,
            clocks: self.clocks,
            survive: self.survive.map(|span| span.0),
            resource: self.resource,
        }))
    }

    /// Returns the deployment that the options describe.
    fn kind(&self, servers: u32) -> Result<Kind, Failure> {
        let failover = self.failover.unwrap_or(Failover::None);
        let is_redis = matches!(self.store, None | Some(Store::Redis));
        if !is_redis && matches!(failover, Failover::Sentinel | Failover::Cluster) {
            return Err(Failure::usage(
                "--failover sentinel and cluster are for --store redis: a database has none or managed",
            ));
        }
        if !is_redis && self.persistence.is_some() {
            return Err(Failure::usage(
                "--persistence is for --store redis: the other stores write a commit to the disk before they acknowledge it",
            ));
        }
        Ok(match (self.store.unwrap_or(Store::Redis), servers) {
            (Store::Mixed, 1) => {
                return Err(Failure::usage("--store mixed needs --servers 3 or more"));
            }
            (Store::Redis, 1) => match failover {
                Failover::None => Kind::Server,
                Failover::Managed => Kind::Replicated,
                Failover::Sentinel => Kind::Group,
                Failover::Cluster => Kind::Cluster,
            },
            (Store::Redis, _) => match failover {
                Failover::None => Kind::Servers,
                Failover::Managed | Failover::Sentinel => Kind::Groups,
                Failover::Cluster => Kind::Shards,
            },
            (Store::Postgres | Store::Mysql, 1) => Kind::Table,
            (Store::Sqlite, 1) => Kind::File,
            (Store::Etcd, 1) => Kind::Etcd,
            _ => Kind::Stores,
        })
    }
}

#[cfg(test)]
mod tests;
