//! Files, and the sequences in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::act::Act;

/// A sequence of requests to one node that has no keys at the beginning.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// What the sequence shows.
    pub name: String,
    /// The rules of the page that the sequence shows.
    pub rules: Vec<String>,
    /// The servers that can run the sequence, if not all can.
    pub only: Option<Only>,
    /// The steps, one after another.
    pub steps: Vec<FileStep>,
}

/// The servers that a sequence can run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Only {
    /// Only real servers. The sequence has keys that no client writes, which a node in memory cannot have.
    Servers,
}

/// One step of a sequence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileStep {
    /// Milliseconds since the sequence began.
    pub at: u64,
    /// The action of the step.
    #[serde(rename = "do")]
    pub act: Act,
    /// The reply of the node.
    #[serde(default)]
    pub reply: Value,
    /// Channels and payloads of what the node publishes.
    #[serde(default)]
    pub published: Vec<(String, String)>,
    /// All keys after the step. If omitted, the keys are not compared.
    pub keys: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "topic")]
    _topic: String,
    #[serde(rename = "owners")]
    _owners: BTreeMap<String, String>,
    sequences: Vec<Sequence>,
}

/// Returns the sequences of all files, by file name without extension.
///
/// # Panics
/// Panics if a file cannot be read or parsed.
#[must_use]
pub fn read() -> BTreeMap<String, Vec<Sequence>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol");
    let files = std::fs::read_dir(folder).expect("the folder of the files");
    let files = files.map(|file| file.expect("a file").path());
    files
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .map(|path| (topic(&path), read_one(&path)))
        .collect()
}

fn topic(path: &Path) -> String {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.expect("a name").to_owned()
}

fn read_one(path: &PathBuf) -> Vec<Sequence> {
    let text = std::fs::read_to_string(path).expect("a file");
    let wrong = |error| panic!("{}: {error}", path.display());
    let value: Value = serde_json::from_str(&text).unwrap_or_else(wrong);
    let owners = value["owners"].as_object().expect("owners");
    let text = owners.iter().fold(text.clone(), |text, (short, owner)| {
        text.replace(&format!("${short}"), owner.as_str().expect("an owner"))
    });
    let file: File = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{}: {error}", path.display());
    });
    file.sequences
}
