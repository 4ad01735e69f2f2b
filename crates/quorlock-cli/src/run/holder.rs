//! Who holds a name: what a process says of itself, and what it finds out about others.

use quorlock::Locks;

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

/// Returns which clients hold these names, in parentheses, as far as the servers and the user's rights tell it.
pub(crate) async fn of(locks: &Locks, names: impl Iterator<Item = &String>) -> String {
    let mut holders: Vec<String> = Vec::new();
    for name in names {
        let Ok(inspection) = locks.inspect(name).await else {
            continue;
        };
        let client = inspection.client().map(str::to_owned);
        holders.extend(client.filter(|client| !holders.contains(client)));
    }
    match holders.is_empty() {
        true => String::new(),
        false => format!(" ({})", holders.join(", ")),
    }
}
