//! Commands for the nodes of a cluster.

use crate::call::{Answer, Call, Flag};
use crate::definition::{Command, Next, on_connection, on_data};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::slots::{SlotShare, slot_of_key};
use crate::watch::Place;

pub(crate) const COMMANDS: &[Command] = &[
    on_connection("asking", 1, &[Flag::NotInScripts], |node, session, _| {
        if node.data().slots.is_none() {
            return Err(Refusal::NO_CLUSTER);
        }
        node.session(session).asks = true;
        Ok(Next::Reply(Reply::OK))
    }),
    on_data(
        "cluster",
        -2,
        &[Flag::NotInScripts, Flag::WhileLoading],
        cluster,
    ),
];

fn cluster(call: &mut Call<'_>) -> Answer {
    let Some(slots) = &call.data.slots else {
        return Err(Refusal::NO_CLUSTER);
    };
    let verb = call.word(1).to_ascii_lowercase();
    match (verb.as_slice(), call.words) {
        (b"slots", [_, _]) => Ok(Reply::Array(slots.shares.iter().map(share).collect())),
        (b"keyslot", [_, _, key]) => Ok(Reply::Int(slot_of_key(key).into())),
        (b"slots" | b"keyslot", _) => {
            let verb = String::from_utf8_lossy(&verb);
            Err(Refusal::arity(&format!("cluster|{verb}")))
        }
        _ => Err(Refusal::unknown_subcommand(call.words)),
    }
}

fn share(share: &SlotShare) -> Reply {
    let mut parts = vec![
        Reply::Int(share.first.into()),
        Reply::Int(share.last.into()),
        place(&share.owner),
    ];
    parts.extend(share.replicas.iter().map(place));
    Reply::Array(parts)
}

/// Returns host, port and id of a node, without metadata.
fn place((host, port): &Place) -> Reply {
    let id = format!("{host}:{port}");
    Reply::Array(vec![
        Reply::bulk(host),
        Reply::Int((*port).into()),
        Reply::bulk(id),
        Reply::Array(Vec::new()),
    ])
}
