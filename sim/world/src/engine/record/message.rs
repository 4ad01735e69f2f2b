//! Records messages and their texts.

use quorlock::transport::{
    AcquireReply, Freshness, ReleaseReply, RenewReply, Reply, Request, Wake,
};
use quorlock_core::marker::{Act, MarkerState, Shown, ShownMarker};
use quorlock_core::message::Ttl;

use crate::history::Process;
use crate::history::recording::{Message, MessageSort, Recording};
use crate::world::World;
use crate::world::call::{Answer, Asked, Returned};
use crate::world::id::{ClientId, Id, NodeId};
use crate::world::link::Passage;
use crate::world::record_call::{Found, RecordCall};
use quorlock_store::Written;

/// Records what a call asks, if this run is recorded.
pub(crate) fn asked(
    world: &mut World,
    process: Process,
    node: NodeId,
    sent: u64,
    passage: Passage,
    asked: &Asked,
) {
    match asked {
        Asked::Request(it) => request(world, process, node, sent, passage, it),
        Asked::Record(call) => {
            if let Some(recording) = &mut world.recording {
                let ends = (ClientId::new(process.client), node);
                let text = record_call(call);
                passes(recording, ends, MessageSort::Request, sent, passage, &text);
            }
        }
    }
}

fn record_call(call: &RecordCall) -> String {
    let key = call.key().as_bytes().escape_ascii();
    match call {
        RecordCall::Read(_) => format!("read {key}"),
        RecordCall::Commit { claims: None, .. } => format!("commit {key}"),
        RecordCall::Commit { .. } => format!("commit {key} if the claim is ours"),
        RecordCall::Write { version: None, .. } => format!("write {key} if there is none"),
        RecordCall::Write { .. } => format!("write {key} if it is unchanged"),
    }
}

/// Records a request, if this run is recorded.
fn request(
    world: &mut World,
    process: Process,
    node: NodeId,
    sent: u64,
    passage: Passage,
    request: &Request,
) {
    let Some(recording) = &mut world.recording else {
        return;
    };
    for owner in owners(request) {
        recording.owners.insert(owner, process);
    }
    if let Request::Acquire(ask) = request
        && !world
            .history
            .names
            .iter()
            .any(|name| *name == ask.name.to_string())
    {
        recording.acquire(&ask.name);
    }
    let ends = (ClientId::new(process.client), node);
    passes(
        recording,
        ends,
        MessageSort::Request,
        sent,
        passage,
        &request_text(request),
    );
}

/// Records an answer, if this run is recorded.
pub(crate) fn answer(
    world: &mut World,
    ends: (ClientId, NodeId),
    passage: Passage,
    answer: &Answer,
) {
    let now = world.now();
    if let Some(recording) = &mut world.recording {
        let (sort, text) = answered(answer);
        passes(recording, ends, sort, now, passage, &text);
    }
}

/// Records a published message.
pub(crate) fn wake(
    recording: &mut Recording,
    ends: (ClientId, NodeId),
    sent: u64,
    passage: Passage,
    wake: Wake,
) {
    let text = match wake {
        Wake::Unlocked => "it is free",
        Wake::ReadersMayEnter => "readers may enter",
        _ => "it has changed",
    };
    passes(recording, ends, MessageSort::Wake, sent, passage, text);
}

fn passes(
    recording: &mut Recording,
    (client, node): (ClientId, NodeId),
    sort: MessageSort,
    sent: u64,
    passage: Passage,
    text: &str,
) {
    let mut push = |arrives, text: &str| {
        recording.messages.push(Message {
            client: client.get(),
            node: node.get(),
            sort,
            sent,
            arrives,
            text: text.to_owned(),
        });
    };
    match passage {
        Passage::Never => push(None, text),
        Passage::Once(at) => push(Some(at), text),
        Passage::Twice(first, second) => {
            push(Some(first), text);
            push(Some(second), &format!("{text} (again)"));
        }
    }
}

/// Returns the owners whose claims a request may create.
fn owners(request: &Request) -> Vec<quorlock::OwnerId> {
    match request {
        Request::Acquire(acquire) => vec![acquire.owner],
        Request::Renew(renew) => renew.claims.iter().map(|claim| claim.owner).collect(),
        _ => Vec::new(),
    }
}

fn request_text(request: &Request) -> String {
    match request {
        Request::Acquire(acquire) => {
            let lease = acquire.lease.millis();
            format!("acquire {} for {lease} ms", acquire.name)
        }
        Request::Renew(renew) => {
            let names: Vec<String> = renew.claims.iter().map(|c| c.name.to_string()).collect();
            format!("renew {}", names.join(", "))
        }
        Request::Release(release) if release.count == 0 => format!("release {}", release.name),
        Request::Release(release) => format!("{} holds of {}", release.count, release.name),
        Request::Inspect(inspect) => format!("inspect {}", inspect.name),
        Request::ForceRelease(force) => format!("free {} by force", force.name),
        Request::Probe(check) => match check.act {
            Act::Confirm(_) => "you were watched for long enough".to_owned(),
            Act::Restate => "clients may want longer leases".to_owned(),
            _ => "which process are you?".to_owned(),
        },
    }
}

/// Returns the suffix that marks an answer of a node whose votes do not count.
fn marker(shown: &Shown) -> &'static str {
    match shown.marker {
        ShownMarker::Own(_, MarkerState::Confirmed, _) => "",
        ShownMarker::Own(_, MarkerState::Observing, _) => "; it is being watched",
        ShownMarker::Anothers => "; it was restarted",
        ShownMarker::Missing => "; it has no marker",
    }
}

fn acquired(reply: &AcquireReply) -> (MessageSort, String) {
    match reply {
        AcquireReply::Granted { freshness, token } => {
            let how = match freshness {
                Freshness::Anew => "granted",
                Freshness::AlreadyYours => "already yours",
            };
            (MessageSort::Yes, format!("{how}, token {}", token.0))
        }
        AcquireReply::Refused { ttl, .. } => {
            let left = match ttl {
                Ttl::Millis(millis) => format!("{millis} ms left"),
                Ttl::Unbounded => "for ever".to_owned(),
            };
            (MessageSort::No, format!("refused: held by another, {left}"))
        }
        other => (MessageSort::Yes, format!("{other:?}")),
    }
}

fn answered(answer: &Answer) -> (MessageSort, String) {
    match answer {
        Ok(Returned::Reply(reply)) => replied(reply),
        Ok(Returned::Found(Found::Snapshot(snapshot))) => match &snapshot.stored {
            Some(stored) => (MessageSort::Yes, claims_in(&stored.record)),
            None => (MessageSort::Yes, "there is no record".to_owned()),
        },
        Ok(Returned::Found(Found::Written(Written::Conflict))) => {
            (MessageSort::No, "it has changed".to_owned())
        }
        Ok(Returned::Found(Found::Committed(Err(_)))) => {
            (MessageSort::No, "rolled back".to_owned())
        }
        Ok(Returned::Found(Found::Written(_) | Found::Committed(Ok(())))) => {
            (MessageSort::Yes, "written".to_owned())
        }
        Err(error) => (MessageSort::No, format!("{:?}", error.cause)),
    }
}

/// Returns the lines of a record about claims.
fn claims_in(record: &[u8]) -> String {
    let text = String::from_utf8_lossy(record);
    let is_claim = |line: &&str| {
        let words = ["plain", "writer", "reader", "marker"];
        words.iter().any(|word| line.starts_with(word))
    };
    let claims: Vec<&str> = text.lines().filter(is_claim).collect();
    match claims.is_empty() {
        true => "nothing is claimed".to_owned(),
        false => claims.join("; "),
    }
}

fn replied(reply: &Reply) -> (MessageSort, String) {
    match reply {
        Reply::Acquire(reply) => acquired(reply),
        Reply::Checked(reply, shown) => {
            let (sort, text) = acquired(reply);
            (sort, format!("{text}{}", marker(shown)))
        }
        Reply::Probe(shown) => (MessageSort::Yes, format!("answered{}", marker(shown))),
        Reply::Renew(replies) => {
            let is_good = |r: &RenewReply| matches!(r, RenewReply::AlreadyYours { .. });
            if replies.iter().all(is_good) {
                (MessageSort::Yes, "renewed".to_owned())
            } else {
                (MessageSort::No, "not yours".to_owned())
            }
        }
        Reply::Release(ReleaseReply::NotYours) => (MessageSort::No, "not yours".to_owned()),
        Reply::Release(_) => (MessageSort::Yes, "released".to_owned()),
        other => (MessageSort::Yes, format!("{other:?}")),
    }
}
