//! Commands for publishing and subscribing.

use crate::call::{Answer, Call, Flag};
use crate::channels::Named;
use crate::definition::{Command, Next, on_connection, on_data};
use crate::glob;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::session::SessionId;

pub(crate) const COMMANDS: &[Command] = &[
    on_connection("psubscribe", -2, LISTENS, |node, session, words| {
        Ok(subscribe(node, session, words, Named::ByPattern))
    }),
    on_data("publish", 3, &[Flag::WhileLoading], publish),
    on_data("pubsub", -2, &[Flag::WhileLoading], look),
    on_connection("punsubscribe", -1, LISTENS, |node, session, words| {
        Ok(unsubscribe(node, session, words, Named::ByPattern))
    }),
    on_data("spublish", 3, &[Flag::WhileLoading], |call| {
        let (channel, payload) = (call.word(1), call.word(2));
        let channels = &mut call.data.channels;
        Ok(Reply::count(channels.publish_in_shard(channel, payload)))
    }),
    on_connection("ssubscribe", -2, LISTENS, |node, session, words| {
        Ok(subscribe(node, session, words, Named::InShard))
    }),
    on_connection("subscribe", -2, LISTENS, |node, session, words| {
        Ok(subscribe(node, session, words, Named::Exactly))
    }),
    on_connection("sunsubscribe", -1, LISTENS, |node, session, words| {
        Ok(unsubscribe(node, session, words, Named::InShard))
    }),
    on_connection("unsubscribe", -1, LISTENS, |node, session, words| {
        Ok(unsubscribe(node, session, words, Named::Exactly))
    }),
];

const LISTENS: &[Flag] = &[
    Flag::NotInScripts,
    Flag::WhileLoading,
    Flag::WhileSubscribed,
];

fn publish(call: &mut Call<'_>) -> Answer {
    let (channel, payload) = (call.word(1), call.word(2));
    Ok(Reply::count(call.data.channels.publish(channel, payload)))
}

fn subscribe(node: &mut Node, session: SessionId, words: &[Vec<u8>], named: Named) -> Next {
    for channel in words.iter().skip(1) {
        node.data().channels.subscribe(session, named, channel);
        confirm(node, session, words, Reply::bulk(channel));
    }
    Next::Nothing
}

/// Unsubscribes from the given channels, or from all if none is given.
fn unsubscribe(node: &mut Node, session: SessionId, words: &[Vec<u8>], named: Named) -> Next {
    let mut channels = words.get(1..).unwrap_or_default().to_vec();
    if channels.is_empty() {
        channels = node.data().channels.of(session, named);
    }
    if channels.is_empty() {
        confirm(node, session, words, Reply::Nil);
    }
    for channel in channels {
        node.data().channels.unsubscribe(session, named, &channel);
        confirm(node, session, words, Reply::Bulk(channel));
    }
    Next::Nothing
}

/// Writes the confirmation with the present number of subscriptions.
fn confirm(node: &mut Node, session: SessionId, words: &[Vec<u8>], channel: Reply) {
    let name = words
        .first()
        .map(|word| word.to_ascii_lowercase())
        .unwrap_or_default();
    let count = Reply::count(node.data().channels.count(session));
    node.say(
        session,
        &Reply::Push(vec![Reply::Bulk(name), channel, count]),
    );
}

fn look(call: &mut Call<'_>) -> Answer {
    let channels = &call.data.channels;
    Ok(match call.word(1).to_ascii_lowercase().as_slice() {
        b"channels" if call.words.len() <= 3 => {
            let pattern = if call.words.len() == 3 {
                call.word(2)
            } else {
                b"*"
            };
            let names = channels.names().filter(|name| glob::matches(pattern, name));
            Reply::Array(names.map(Reply::bulk).collect())
        }
        b"numsub" => {
            let counts = call.words_from(2).iter().flat_map(|channel| {
                [
                    Reply::bulk(channel),
                    Reply::count(channels.listeners_of(channel)),
                ]
            });
            Reply::Array(counts.collect())
        }
        b"numpat" if call.words.len() == 2 => Reply::count(channels.patterns()),
        _ => return Err(Refusal::unknown_subcommand(call.words)),
    })
}
