//! Inspections as JSON.

use quorlock::operate::{Found, Inspection, NodeInspection, Summary, Ttl};
use serde_json::{Map, Value, json};

/// Returns the state of a name, in one word.
pub(super) fn word(summary: &Summary) -> &'static str {
    match summary {
        Summary::Held { .. } => "held",
        Summary::Read { .. } => "read",
        Summary::Queued { .. } => "queued",
        Summary::Free => "free",
        Summary::Obstructed => "obstructed",
        Summary::Undecided => "undecided",
        _ => "unknown",
    }
}

/// Returns everything that is known about a name.
pub(super) fn inspection(inspection: &Inspection) -> Value {
    let summary = inspection.summary();
    let owner = match &summary {
        Summary::Held { owner, .. } => Some(owner.as_str()),
        _ => None,
    };
    json!({
        "name": inspection.name.text(),
        "state": word(&summary),
        "owner": owner,
        "needed": inspection.needed,
        "nodes": inspection.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

fn node(node: &NodeInspection) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| {
        object.insert(name.into(), value);
    };
    put("address", node.address.as_str().into());
    match &node.found {
        Err(error) => put("error", error.to_string().into()),
        Ok(reply) => {
            put("token", reply.token.map(|token| token.0).into());
            put("waiting", reply.waiting.into());
            match &reply.found {
                Found::Nothing => put("state", "free".into()),
                Found::NotALock => put("state", "not a lock".into()),
                Found::Plain { owner, count, ttl } => {
                    put("state", "held".into());
                    put("owner", owner.as_str().into());
                    put("count", (*count).into());
                    put("left_ms", left(*ttl));
                    put("client", reply.client.as_deref().into());
                }
                Found::ReadWrite {
                    writer,
                    readers,
                    ttl,
                } => {
                    put("state", "read-write".into());
                    put(
                        "owner",
                        writer.as_ref().map(|(owner, _)| owner.as_str()).into(),
                    );
                    put("count", writer.as_ref().map(|(_, count)| *count).into());
                    put("readers", (*readers).into());
                    put("left_ms", left(*ttl));
                }
                _ => put("state", "unknown".into()),
            }
        }
    }
    if let Some(quarantine) = &node.quarantine {
        put("quarantine", quarantine.to_string().into());
    }
    Value::Object(object)
}

/// Returns the remaining milliseconds; null for a claim without expiry.
fn left(ttl: Ttl) -> Value {
    match ttl {
        Ttl::Millis(millis) => millis.into(),
        Ttl::Unbounded => Value::Null,
    }
}
