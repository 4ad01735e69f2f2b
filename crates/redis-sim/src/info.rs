//! The text of `INFO`.

use std::fmt::Write;

use crate::data::{Backlog, Data, Role};

/// The version of Redis that the server imitates.
pub(crate) const VERSION: &str = "7.0.15";

/// The address that a replica reports for its primary. There is no network here, so it is fixed.
pub(crate) const PRIMARY: (&str, u16) = ("primary", 6379);

const SECTIONS: [&str; 6] = [
    "server",
    "clients",
    "memory",
    "replication",
    "cluster",
    "keyspace",
];

/// Returns the requested sections, in their own order; all sections if none is requested.
pub(crate) fn text(data: &Data, words: &[Vec<u8>]) -> String {
    let is_wanted = |section: &str| {
        let says = |word: &Vec<u8>| {
            let all = ["all", "default", "everything", section];
            all.iter()
                .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        words.is_empty() || words.iter().any(says)
    };
    let is_there = |section: &str| section != "cluster" || data.slots.is_some();
    let sections = SECTIONS
        .into_iter()
        .filter(|section| is_wanted(section) && is_there(section));
    let texts: Vec<String> = sections.map(|section| one(data, section)).collect();
    texts.join("\r\n")
}

fn one(data: &Data, section: &str) -> String {
    let mut lines = Lines::default();
    match section {
        "server" => server(data, &mut lines),
        "clients" => {
            lines.head("Clients");
            lines.add("connected_clients", data.clients);
        }
        "memory" => {
            lines.head("Memory");
            lines.add("maxmemory", 0);
            lines.add("maxmemory_policy", "noeviction");
        }
        "replication" => replication(data, &mut lines),
        "cluster" => {
            lines.head("Cluster");
            lines.add("cluster_enabled", 1);
        }
        _ => keyspace(data, &mut lines),
    }
    lines.0
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn head(&mut self, title: &str) {
        self.0 += &format!("# {title}\r\n");
    }

    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        write!(self.0, "{name}:{value}\r\n").expect("BUG: text takes any text");
    }
}

fn server(data: &Data, lines: &mut Lines) {
    lines.head("Server");
    lines.add("redis_version", VERSION);
    let mode = match (&data.watch, &data.slots) {
        (Some(_), _) => "sentinel",
        (None, Some(_)) => "cluster",
        (None, None) => "standalone",
    };
    lines.add("redis_mode", mode);
    lines.add("os", "simulated");
    lines.add("arch_bits", 64);
    lines.add("process_id", 1);
    lines.add("run_id", &data.ids.run_id);
    lines.add("server_time_usec", data.now.0);
    let uptime = data
        .started
        .map_or(0, |started| data.now.0.saturating_sub(started.0));
    lines.add("uptime_in_seconds", uptime / 1_000_000);
}

fn replication(data: &Data, lines: &mut Lines) {
    lines.head("Replication");
    match data.role {
        Role::Primary => lines.add("role", "master"),
        Role::Replica => {
            lines.add("role", "slave");
            lines.add("master_host", PRIMARY.0);
            lines.add("master_port", PRIMARY.1);
            lines.add("master_link_status", "up");
        }
    }
    lines.add("connected_slaves", data.replicas);
    lines.add("master_replid", &data.ids.replication_id);
    let none = "0".repeat(40);
    lines.add(
        "master_replid2",
        data.ids.former_id.as_ref().unwrap_or(&none),
    );
    lines.add("master_repl_offset", data.offset);
    lines.add(
        "repl_backlog_active",
        u8::from(data.backlog == Backlog::Active),
    );
}

fn keyspace(data: &Data, lines: &mut Lines) {
    lines.head("Keyspace");
    for db in data.databases() {
        let (mut keys, mut expires) = (0, 0);
        for (_, entry) in data.entries(db) {
            keys += 1;
            expires += u32::from(entry.expires.is_some());
        }
        lines.add(
            &format!("db{db}"),
            format_args!("keys={keys},expires={expires},avg_ttl=0"),
        );
    }
}
