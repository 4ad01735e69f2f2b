//! Finds the client of an owner among the connections of a server, by their names.

use quorlock_core::message::{Found, InspectReply};
use redis::{Cmd, Value};

/// The word before the label in the name of a connection: `quorlock:<label>:<uuid of the client>`.
pub(crate) const WORD: &str = "quorlock";

/// The command that lists the connections.
pub(crate) fn list() -> Cmd {
    let mut cmd = redis::cmd("CLIENT");
    cmd.arg("LIST");
    cmd
}

/// Returns the label and the address of the client that owns what was found.
pub(crate) fn of_owner(reply: &InspectReply, answer: &Value) -> Option<String> {
    let owner = match &reply.found {
        Found::Plain { owner, .. } => owner,
        Found::ReadWrite {
            writer: Some((owner, _)),
            ..
        } => owner,
        _ => return None,
    };
    let (client, _) = owner.rsplit_once(':')?;
    let Value::BulkString(list) = answer else {
        return None;
    };
    let list = std::str::from_utf8(list).ok()?;
    list.lines().find_map(|line| labelled(line, client))
}

fn labelled(line: &str, client: &str) -> Option<String> {
    let field = |name: &str| {
        let mut fields = line.split(' ');
        fields.find_map(|field| field.strip_prefix(name))
    };
    let (word, label) = field("name=")?.split_once(':')?;
    let label = label.strip_suffix(client)?.strip_suffix(':')?;
    (word == WORD).then(|| {
        format!(
            "{label} at {}",
            field("addr=").unwrap_or("an unknown address")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_core::message::Ttl;

    #[test]
    fn the_client_is_found_by_the_name_of_one_of_its_connections() {
        let list = "id=3 addr=10.0.0.7:4242 laddr=10.0.0.5:6379 fd=8 name= age=1\n\
            id=4 addr=10.0.0.8:4243 laddr=10.0.0.5:6379 fd=9 name=quorlock:w:1:0f-1 age=1\n\
            id=5 addr=10.0.0.9:4244 laddr=10.0.0.5:6379 fd=9 name=other:w:0f-2 age=1\n";
        let answer = Value::BulkString(list.into());
        let of = |owner: &str| {
            let found = Found::Plain {
                owner: owner.into(),
                count: 1,
                ttl: Ttl::Millis(1),
            };
            of_owner(&InspectReply::new(found, 0, None), &answer)
        };
        assert_eq!(of("0f-1:7").as_deref(), Some("w:1 at 10.0.0.8:4243"));
        for none in ["0f-2:7", "f-1:7", "0f-3:7", "jvm"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(
            of_owner(&InspectReply::new(Found::Nothing, 0, None), &answer),
            None
        );
    }
}
