//! Who holds a name: what a process says of itself, and what it finds out about others.

use quorlock::Locks;

use crate::failure::{Code, Failure};

/// The longest name of a host in a label.
const MOST: usize = 64;

/// Returns the label of this process: its host and its process id.
pub(crate) fn label() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_bytes().iter();
    let host = host.take(MOST).map(|byte| match byte {
        byte if byte.is_ascii_graphic() => char::from(*byte),
        _ => '_',
    });
    let host: String = host.collect();
    format!("{host}:{}", std::process::id())
}

/// Adds to a failure because of others which clients hold these names, as far as the servers and the user's rights tell it.
pub(crate) async fn with_holders(
    locks: &Locks,
    names: impl Iterator<Item = &String>,
    failure: Failure,
) -> Failure {
    if failure.code != Code::CONTENDED {
        return failure;
    }
    let mut holders: Vec<String> = Vec::new();
    for name in names {
        let Ok(inspection) = locks.inspect(name).await else {
            continue;
        };
        let nodes = inspection.nodes.into_iter();
        let clients = nodes.filter_map(|node| node.found.ok()?.client);
        for client in clients {
            // Each server sees another port of the same client.
            let label = client.split(" at ").next().unwrap_or_default();
            if !holders.iter().any(|holder| holder.starts_with(label)) {
                holders.push(client);
            }
        }
    }
    match holders.is_empty() {
        true => failure,
        false => Failure::new(
            failure.code,
            format!("{} ({})", failure.text, holders.join(", ")),
        ),
    }
}
