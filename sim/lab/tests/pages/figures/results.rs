//! The recorded output of commands: `docs/results`, one file for each command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::figures::{peers, rates, studies};

/// Figures by key, as they appear on a page.
pub(crate) type Figures = BTreeMap<String, String>;

/// The output of one command.
pub(crate) struct Results {
    pub(crate) name: &'static str,
    pub(crate) command: String,
    pub(crate) figures: Figures,
}

fn folder() -> PathBuf {
    root().join("docs/results")
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the commit that is checked out, with a mark if the working tree differs from it.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(root())
            .output();
        let output = output.expect("git starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let is_changed = !git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        "crates",
        "sim/check/src",
        "sim/lab/src",
        "sim/plan/src",
        "sim/testkit/src",
        "sim/world/src",
    ])
    .is_empty();
    let mark = if is_changed { ", with changes" } else { "" };
    format!("{}{mark}", git(&["rev-parse", "--short", "HEAD"]))
}

impl Results {
    /// Reads the recorded results of a command.
    pub(crate) fn read(name: &'static str) -> Option<Results> {
        let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).ok()?;
        let value: Value = serde_json::from_str(&text).expect("results are JSON");
        let figures = value["figures"].as_object()?;
        let of_one = |(key, value): (&String, &Value)| {
            (key.clone(), value.as_str().unwrap_or_default().to_owned())
        };
        Some(Results {
            name,
            command: value["command"].as_str()?.to_owned(),
            figures: figures.iter().map(of_one).collect(),
        })
    }

    /// Records the results.
    pub(crate) fn write(&self, commit: &str) {
        let figures: Map<String, Value> = self
            .figures
            .iter()
            .map(|(k, v)| (k.clone(), json!(v)))
            .collect();
        let kept = json!({
            "command": self.command,
            "version": env!("CARGO_PKG_VERSION"),
            "commit": commit,
            "figures": figures,
        });
        std::fs::create_dir_all(folder()).expect("a folder");
        let path = folder().join(format!("{}.json", self.name));
        std::fs::write(path, format!("{kept:#}\n")).expect("results are written");
    }
}

/// Returns all figures in `.json` files, each as `file.key`. Also returns `file.command`, `file.version` and
/// `file.commit`. The figures of files with rows are tables of these, and those of the studies are of their
/// tables in CSV.
pub(crate) fn all() -> Figures {
    let mut all = Figures::new();
    for file in std::fs::read_dir(folder()).expect("docs/results") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|kind| kind != "json") {
            continue;
        }
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let value: Value = serde_json::from_str(&text).expect("results are JSON");
        for key in ["command", "version", "commit"] {
            let text = value[key].as_str().unwrap_or_default();
            all.insert(format!("{name}.{key}"), text.to_owned());
        }
        for (key, text) in value["figures"].as_object().into_iter().flatten() {
            let text = text.as_str().unwrap_or_default();
            all.insert(format!("{name}.{key}"), text.to_owned());
        }
    }
    let rows = |name: &str| std::fs::read_to_string(folder().join(name)).expect("rows");
    for (name, figures) in [
        ("peers", peers::figures(&rows("peers.jsonl"))),
        ("rates", rates::figures(&rows("rates.jsonl"))),
        ("outages", rates::outages(&rows("outages.jsonl"))),
        ("studies", studies::figures(&folder().join("studies"))),
    ] {
        let named = figures
            .into_iter()
            .map(|(key, figure)| (format!("{name}.{key}"), figure));
        all.extend(named);
    }
    all
}
