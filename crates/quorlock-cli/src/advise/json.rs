//! The deployments and the advice as JSON.

use serde_json::{Value, json};

use super::advice::Advice;
use super::table::{DEPLOYMENTS, Deployment, Evidence, Expected};

/// Returns one line for each deployment.
pub(super) fn table() -> String {
    let lines = DEPLOYMENTS.iter().map(|deployment| {
        let evidence = deployment.evidence.iter().copied().flatten();
        let mut line = described(deployment);
        line["evidence"] = evidence.map(shown).collect();
        line.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the advice as one line.
pub(super) fn advice(advice: &Advice) -> String {
    let mut line = described(advice.deployment);
    line["breaks"] = advice.breaks.iter().map(|it| shown(it)).collect();
    line["holds"] = advice.holds.iter().map(|it| shown(it)).collect();
    line["nodes"] = advice.nodes.as_str().into();
    line["lease"] = advice.lease.as_str().into();
    line["fencing"] = advice.fencing.into();
    line["settings"] = advice.settings.clone().into();
    line["redis_conf"] = advice.servers.clone().into();
    line["pages"] = advice.pages.clone().into();
    line.to_string()
}

fn described(deployment: &Deployment) -> Value {
    json!({
        "deployment": deployment.title,
        "address": deployment.address,
        "promises": deployment.promise,
        "down": deployment.down,
    })
}

fn shown(evidence: &Evidence) -> Value {
    json!({
        "text": evidence.text,
        "scenario": evidence.scenario,
        "case": evidence.case,
        "expected": match evidence.expected {
            Expected::Holds => "holds",
            Expected::TwoHolders => "two holders",
            Expected::LateWrite => "a late write",
            Expected::Stands => "no lock is granted",
        },
    })
}
