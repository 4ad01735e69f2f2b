//! The lock servers that files run on.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::marker::Process;
use quorlock_core::message::{Reply, Request, Wake};
use quorlock_core::name::Name;
use quorlock_core::node::{Held, ReadWrite};
use quorlock_core::transport::Cause;
use serde_json::Value;

use super::act::{Put, owner};
use super::keys::{of_looks, without_servers_own};
use super::sequence::{Only, Sequence};
use crate::conformance::{Arm, Plant};
use crate::wire;

/// A lock server without keys, on which a sequence runs.
#[expect(async_fn_in_trait, reason = "for this crate's tests alone")]
pub trait Bench {
    /// Deletes all keys.
    fn begin(&mut self);

    /// Returns whether the server can run the sequence.
    fn can(&self, sequence: &Sequence) -> bool;

    /// Returns the process of the server.
    fn process(&self) -> Process;

    /// Returns the clock of the server, in milliseconds.
    fn clock_millis(&mut self) -> u64;

    /// Executes requests that arrive at the same moment.
    async fn ask(&mut self, requests: &[Request]) -> Vec<Result<Reply, Cause>>;

    /// Returns the channels and payloads of what was published since the last call.
    fn published(&mut self) -> Vec<(String, String)>;

    /// Advances the time by `span`.
    fn pass(&mut self, span: Duration);

    /// Writes a key as another program would.
    fn put(&mut self, put: &Put);

    /// Becomes another process, and keeps all its keys.
    fn restart(&mut self);

    /// Returns all keys, in the words of the files.
    fn keys(&mut self) -> BTreeMap<String, Value>;

    /// Returns those keys of a file that this server can have.
    fn expected(&self, keys: &BTreeMap<String, Value>) -> BTreeMap<String, Value>;
}

/// A node in memory. Its clock stands still, and it has only keys of our clients.
#[derive(Debug)]
pub struct ArmBench<A> {
    arm: A,
    names: Vec<Name>,
    clock_millis: u64,
}

impl<A: Arm> ArmBench<A> {
    /// Creates a node whose clock begins at this time, for locks on these names.
    pub fn new(arm: A, names: &[Name], clock_millis: u64) -> Self {
        ArmBench {
            arm,
            names: names.to_vec(),
            clock_millis,
        }
    }
}

impl<A: Arm> Bench for ArmBench<A> {
    fn begin(&mut self) {
        self.arm.begin();
    }

    fn can(&self, sequence: &Sequence) -> bool {
        sequence.only != Some(Only::Servers)
    }

    fn process(&self) -> Process {
        self.arm.process()
    }

    fn clock_millis(&mut self) -> u64 {
        self.clock_millis
    }

    async fn ask(&mut self, requests: &[Request]) -> Vec<Result<Reply, Cause>> {
        self.arm.apply_together(requests)
    }

    fn published(&mut self) -> Vec<(String, String)> {
        let text = |wake| match wake {
            Wake::Unlocked => "0".to_owned(),
            Wake::ReadersMayEnter => "1".to_owned(),
            other => panic!("{other:?} has no words"),
        };
        let published = self.arm.published().into_iter();
        published
            .map(|(channel, wake)| (wire::channel_of(&channel), text(wake)))
            .collect()
    }

    fn pass(&mut self, span: Duration) {
        self.arm.pass(span);
    }

    fn put(&mut self, put: &Put) {
        self.arm.plant(&plant(put, &self.names));
    }

    fn restart(&mut self) {
        self.arm.plant(&Plant::Restart);
    }

    fn keys(&mut self) -> BTreeMap<String, Value> {
        of_looks(&self.arm.look(&self.names))
    }

    fn expected(&self, keys: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
        without_servers_own(keys)
    }
}

/// Returns what another program writes, as far as a node in memory can have it.
fn plant(put: &Put, names: &[Name]) -> Plant {
    let ttl = put.ttl.map(Duration::from_millis);
    if let Some(name) = names.iter().find(|name| wire::token_key(name) == put.key) {
        let token = put.string.as_ref().expect("a counter is a text");
        return Plant::Token {
            name: name.clone(),
            token: Token(token.parse().expect("a number")),
            ttl,
        };
    }
    let name = names.iter().find(|name| wire::claim_key(name) == put.key);
    let name = name.unwrap_or_else(|| panic!("{put:?} is for servers only"));
    let held = match &put.hash {
        None => {
            assert_eq!(
                put.string.as_deref(),
                Some("not a lock"),
                "for servers only"
            );
            Held::NotALock
        }
        Some(fields) => held(fields),
    };
    Plant::Key {
        name: name.clone(),
        held,
        ttl,
    }
}

fn held(fields: &BTreeMap<String, String>) -> Held {
    let count = |text: &str| text.parse().expect("a count");
    if !fields.contains_key("mode") {
        let (first, text) = fields.first_key_value().expect("a field");
        assert_eq!(fields.len(), 1, "{fields:?} is for servers only");
        return Held::Plain {
            owner: owner(first),
            count: count(text),
        };
    }
    let mut held = ReadWrite::default();
    for (field, text) in fields.iter().filter(|(field, _)| *field != "mode") {
        match field.strip_suffix(":write") {
            Some(writer) => held.writer = Some((owner(writer), count(text))),
            None => {
                held.readers.insert(owner(field), count(text));
            }
        }
    }
    Held::ReadWrite(held)
}
