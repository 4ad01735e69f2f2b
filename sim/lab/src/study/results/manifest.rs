//! What ran, and where: the manifest of a folder of results.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Shard;

/// The version of the form. It is incremented when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// What ran, and where.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the form of both files.
    pub schema: u32,
    /// The version of the simulator.
    pub version: String,
    /// The commit that it was built from, if the environment variable `QUORLOCK_COMMIT` had it during the build.
    pub commit: Option<String>,
    /// What the build has: `debug-assertions`, `unix`.
    pub features: Vec<String>,
    /// From what the plans of all cells follow, and which command ran them.
    pub law: Value,
    /// The SHA-256 of the law and the cells as JSON, in hexadecimal.
    pub law_hash: String,
    /// A hash of the traces of some runs: builds that behave differently have another one, even at one commit.
    pub behaviour: String,
    /// The cells with the seeds of all shards.
    pub cells: Vec<CellSeeds>,
    /// The part of the seeds that ran.
    pub shard: Shard,
    /// The arguments of the command.
    pub flags: Vec<String>,
    /// The machine.
    pub host: Host,
    /// For how long the command has run, in seconds, all processes together that continued one another.
    pub wall_seconds: f64,
    /// The number of rows that were written when this was.
    pub rows: u64,
    /// Whether all runs have ended that the command asked for.
    pub is_complete: bool,
}

/// A cell with the seeds of all shards.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellSeeds {
    /// The name of the cell.
    pub cell: String,
    /// The first seed, and the one behind the last.
    pub seeds: Range<u64>,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The name of the machine, or an empty string if it has none.
    pub name: String,
    /// The operating system.
    pub system: String,
    /// The architecture of the processor.
    pub architecture: String,
    /// The number of cores that the process may use.
    pub cores: usize,
}

impl Manifest {
    /// Creates the manifest of runs that have not begun. `traces` are those of a few runs.
    #[must_use]
    pub fn new(
        law: &impl Serialize,
        cells: Vec<CellSeeds>,
        shard: Shard,
        traces: &[u8],
        flags: Vec<String>,
    ) -> Self {
        let law = serde_json::to_value(law).expect("BUG: a law is JSON");
        let text = serde_json::to_vec(&(&law, &cells)).expect("BUG: a law is JSON");
        Manifest {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("QUORLOCK_COMMIT").map(str::to_owned),
            features: features(),
            law,
            law_hash: hash(&text),
            behaviour: hash(traces),
            cells,
            shard,
            flags,
            host: Host::this(),
            wall_seconds: 0.0,
            rows: 0,
            is_complete: false,
        }
    }

    /// Returns what must be the same in results that belong together, with names for people.
    pub(super) fn common(&self) -> BTreeMap<&'static str, String> {
        let commit = self.commit.clone();
        BTreeMap::from([
            ("schema", self.schema.to_string()),
            ("version", self.version.clone()),
            ("commit", commit.unwrap_or_else(|| "unknown".to_owned())),
            ("list of features", self.features.join(", ")),
            ("law", in_words(&self.law, &self.law_hash)),
            ("range of seeds", seeds_in_words(&self.cells)),
            ("number of shards", self.shard.of.to_string()),
            // This follows from the law, unless the builds differ.
            ("behaviour", self.behaviour.clone()),
        ])
    }
}

/// Returns a law if it is short, or else its hash.
fn in_words(law: &Value, hash: &str) -> String {
    let text = law.to_string();
    match text.len() {
        ..200 => text,
        _ => format!("the one with the hash {hash}"),
    }
}

/// Returns the largest range of seeds of a cell. The hash of the law covers those of all cells.
fn seeds_in_words(cells: &[CellSeeds]) -> String {
    let ranges = cells.iter().map(|cell| &cell.seeds);
    let largest = ranges.max_by_key(|seeds| seeds.end - seeds.start);
    largest.map_or(String::new(), |seeds| {
        format!("{}..{}", seeds.start, seeds.end)
    })
}

impl Host {
    fn this() -> Self {
        Host {
            name: name(),
            system: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }
}

#[cfg(unix)]
fn name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

fn features() -> Vec<String> {
    let all = [
        ("debug-assertions", cfg!(debug_assertions)),
        ("unix", cfg!(unix)),
    ];
    let had = all.into_iter().filter(|(_, is_had)| *is_had);
    had.map(|(name, _)| name.to_owned()).collect()
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
