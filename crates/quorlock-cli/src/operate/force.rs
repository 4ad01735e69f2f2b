//! `quorlock force-release`.

use clap::Args;
use quorlock::operate::{ForceReleaseError, ForceReleaseReply, ForceReleased, NodeForceRelease};
use serde_json::{Value, json};

use super::{print, with_locks};
use crate::failure::Code;
use crate::settings::Reach;

/// Release a name by force, even if its holder is alive. Use this only for a holder that is known to be gone.
///
/// The holder is not notified. A `quorlock run` notices the loss at its next renewal, within a third of its lease, and
/// then ends its command and exits with 76. Until then two commands may write at the same time; only a store that
/// compares fencing tokens can reject the writes of the first. Exits with 69 if fewer servers than a lock needs confirm
/// that the name is free.
#[derive(Clone, Debug, Args)]
pub(crate) struct ForceRelease {
    #[command(flatten)]
    reach: Reach,
    /// Print one line of JSON for each name.
    #[arg(long)]
    json: bool,
    /// Names to release.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

impl ForceRelease {
    pub(crate) fn run(&self) -> Code {
        with_locks(&self.reach, |locks, _| async move {
            let mut code = Code::SUCCESS;
            for name in &self.names {
                let (report, is_free) = match locks.force_release(name).await {
                    Ok(report) => (report, true),
                    Err(ForceReleaseError::Unconfirmed(report)) => (report, false),
                    Err(ForceReleaseError::Config(error)) => return Err(error.into()),
                    Err(error) => return Err(crate::failure::Failure::system(name, error)),
                };
                if !is_free {
                    code = Code::UNAVAILABLE;
                }
                match self.json {
                    true => print(&released(&report, is_free).to_string())?,
                    false => print(&report.to_string())?,
                }
            }
            Ok(code)
        })
    }
}

fn released(report: &ForceReleased, is_free: bool) -> Value {
    json!({
        "name": report.name.text(),
        "free": is_free,
        "freed": report.freed(),
        "needed": report.needed,
        "nodes": report.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

fn node(node: &NodeForceRelease) -> Value {
    match &node.result {
        Ok(ForceReleaseReply::Freed) => json!({"address": node.address, "state": "freed"}),
        Ok(ForceReleaseReply::WasFree) => json!({"address": node.address, "state": "was free"}),
        Ok(other) => json!({"address": node.address, "error": format!("not confirmed: {other:?}")}),
        Err(error) => json!({"address": node.address, "error": error.to_string()}),
    }
}
