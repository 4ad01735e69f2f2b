//! The deployments and the advice as JSON.

use serde_json::{Value, json};

use super::advice::Advice;
use super::table::{DEPLOYMENTS, Deployment, Evidence, Expected};

/// Returns one line for each deployment.
pub(super) fn table() -> String {
    let lines = DEPLOYMENTS.iter().map(|deployment| {
        let evidence = deployment.evidence.iter().copied().flatten();
        let evidence: Value = evidence.map(shown).collect();
        described(deployment, json!({"evidence": evidence}))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the advice as one line.
pub(super) fn advice(advice: &Advice) -> String {
    let breaks: Value = advice.breaks.iter().map(|it| shown(it)).collect();
    let holds: Value = advice.holds.iter().map(|it| shown(it)).collect();
    let more = json!({
        "breaks": breaks,
        "holds": holds,
        "nodes": advice.nodes,
        "lease": advice.lease,
        "fencing": advice.fencing,
        "settings": advice.settings,
        "redis_conf": advice.servers,
        "pages": advice.pages,
    });
    described(advice.deployment, more)
}

/// Returns a deployment with more fields.
fn described(deployment: &Deployment, more: Value) -> String {
    let mut line = json!({
        "deployment": deployment.title,
        "address": deployment.address,
        "promises": deployment.promise,
        "down": deployment.down,
    });
    if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
        line.extend(more);
    }
    line.to_string()
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
