//! A lease in a record of a replicated log.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quorlock_store::{Draft, Key, Store, Version, Written};

use super::{
    AlgorithmHold, AlgorithmLock, AlgorithmNodes, Attempt, LockAlgorithm, LockClient, Name,
    Property, Released, Step, Time,
};
use quorlock_sim_plan::variant::LEASE_RECORD;

/// A lease over a replicated log, as in the leader election of Kubernetes on etcd, and in the lock client of DynamoDB: the log has one
/// record for a name, and executes a write only if the record is the one that the client has read. A holder renews by a write. A
/// waiter takes the record over when it has seen it unchanged for the holder's lease on its own clock, so no two clocks are compared.
#[derive(Debug)]
pub struct LeaseRecord;

/// The classes of fault that break the assumptions: clocks of clients that run at other rates or stand still, and records that are lost.
const TOO_MUCH: [&str; 6] = [
    "suspend, clock stops",
    "drift beyond 1 %",
    "eviction",
    "flush",
    "everything",
    "everything, amnesia",
];

impl LockAlgorithm for LeaseRecord {
    fn name(&self) -> &'static str {
        LEASE_RECORD.name()
    }

    fn title(&self) -> &'static str {
        "a lease in a record of a replicated log, such as etcd: a waiter takes it over when it has seen it unchanged for a lease (Kubernetes, DynamoDB)"
    }

    fn nodes(&self) -> AlgorithmNodes {
        LEASE_RECORD.nodes()
    }

    fn claims(&self, _: Property, class: &str) -> bool {
        !TOO_MUCH.contains(&class)
    }

    fn lock(&self, client: Rc<LockClient>, name: Name) -> Rc<dyn AlgorithmLock> {
        let records = Records {
            store: client.store(0),
            key: Key::new(name.stem()),
            client,
        };
        Rc::new(RecordLock {
            records,
            seen: RefCell::new(None),
        })
    }
}

/// What the record of a name says.
#[derive(Clone, PartialEq, Eq, Debug)]
struct LeaseText {
    /// The holder; `None` if the name is free.
    owner: Option<String>,
    token: u64,
    lease: Duration,
}

impl LeaseText {
    fn encode(&self) -> Vec<u8> {
        let owner = self.owner.as_deref().unwrap_or("-");
        format!("{} {} {owner}", self.token, self.lease.as_nanos()).into_bytes()
    }

    fn decode(record: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(record).ok()?.split(' ');
        Some(LeaseText {
            token: words.next()?.parse().ok()?,
            lease: Duration::from_nanos(words.next()?.parse().ok()?),
            owner: words.next().filter(|word| *word != "-").map(str::to_owned),
        })
    }
}

/// The record of one name.
#[derive(Clone, Debug)]
struct Records {
    client: Rc<LockClient>,
    store: Arc<dyn Store>,
    key: Key,
}

impl Records {
    /// Returns the record and its version, `None` if there is none yet; an error if the log did not answer.
    async fn read(&self) -> Result<Option<(LeaseText, Version)>, ()> {
        let snapshot = self.store.read(&self.key).await.map_err(|_| ())?;
        let stored = snapshot.stored;
        Ok(stored.and_then(|stored| Some((LeaseText::decode(&stored.record)?, stored.version))))
    }

    /// Writes the record over a version. Returns the new version, `None` if the record is not that one any more; an error if the
    /// log did not answer, and may have written it.
    async fn write(&self, text: &LeaseText, over: Option<&Version>) -> Result<Option<Version>, ()> {
        let draft = Draft {
            record: text.encode(),
            number: self.client.random(),
            has_news: true,
            useful_until: None,
        };
        match self.store.write_if(&self.key, over, draft).await {
            Ok(Written::Stored { version, .. }) => Ok(Some(version)),
            Ok(Written::Conflict) => Ok(None),
            Err(_) => Err(()),
        }
    }
}

#[derive(Debug)]
struct RecordLock {
    records: Records,
    /// The version of another holder's record that was seen last, and since when.
    seen: RefCell<Option<(Version, Time)>>,
}

impl RecordLock {
    /// Returns how much longer a record must remain unchanged before it may be taken over.
    fn left(&self, text: &LeaseText, version: &Version, asked: Time) -> Duration {
        let mut seen = self.seen.borrow_mut();
        let since = match &*seen {
            Some((known, since)) if known == version => *since,
            _ => {
                // The record was written before this answer arrived, so the holder's lease ends before this time and the lease.
                let now = self.records.client.now();
                *seen = Some((version.clone(), now));
                now
            }
        };
        // The record was the same when this read was asked for. What the answer took does not count.
        (since + longer(text.lease)).since(asked)
    }

    async fn try_once(&self, lease: Duration) -> Result<Attempt, ()> {
        let client = &self.records.client;
        let asked = client.now();
        let found = self.records.read().await?;
        if let Some((text, version)) = &found
            && text.owner.is_some()
        {
            let left = self.left(text, version, asked);
            if !left.is_zero() {
                return Ok(Attempt::Refused(Some(left)));
            }
        }
        let token = found.as_ref().map_or(0, |(text, _)| text.token) + 1;
        let owner = client.fresh_owner_id();
        let text = LeaseText {
            owner: Some(owner.to_string()),
            token,
            lease,
        };
        let sent = client.now();
        let written = self
            .records
            .write(&text, found.as_ref().map(|(_, version)| version))
            .await?;
        let Some(version) = written else {
            return Ok(Attempt::Refused(None));
        };
        Ok(Attempt::Won(Rc::new(RecordHold {
            records: self.records.clone(),
            text,
            state: RefCell::new(HoldState {
                version,
                until: sent + shorter(lease),
            }),
        })))
    }
}

impl AlgorithmLock for RecordLock {
    fn attempt(&self, lease: Duration) -> Step<'_, Attempt> {
        Box::pin(async move { self.try_once(lease).await.unwrap_or(Attempt::Failed) })
    }
}

#[derive(Debug)]
struct RecordHold {
    records: Records,
    text: LeaseText,
    state: RefCell<HoldState>,
}

#[derive(Debug)]
struct HoldState {
    /// The version that this client wrote or read last.
    version: Version,
    until: Time,
}

impl RecordHold {
    /// Writes over the record if it is still this client's. Returns whether it was; an error if the log did not answer.
    async fn put(&self, text: &LeaseText) -> Result<bool, ()> {
        loop {
            let over = self.state.borrow().version.clone();
            if let Some(version) = self.records.write(text, Some(&over)).await? {
                self.state.borrow_mut().version = version;
                return Ok(true);
            }
            // A write of this client that was not answered may have been executed. Then the record is still its own.
            match self.records.read().await? {
                Some((found, version)) if found.owner == self.text.owner => {
                    self.state.borrow_mut().version = version;
                }
                _ => return Ok(false),
            }
        }
    }
}

impl AlgorithmHold for RecordHold {
    fn valid_until(&self) -> Time {
        self.state.borrow().until
    }

    fn token(&self) -> u64 {
        self.text.token
    }

    fn renew(&self) -> Step<'_, ()> {
        Box::pin(async move {
            let sent = self.records.client.now();
            match self.put(&self.text).await {
                Ok(true) => self.state.borrow_mut().until = sent + shorter(self.text.lease),
                Ok(false) => self.state.borrow_mut().until = Time::ZERO,
                Err(()) => {}
            }
        })
    }

    fn release(&self) -> Step<'_, Released> {
        Box::pin(async move {
            let free = LeaseText {
                owner: None,
                ..self.text.clone()
            };
            match self.put(&free).await {
                Ok(true) => Released::Free,
                Ok(false) => Released::NotHeld,
                Err(()) => Released::Unconfirmed,
            }
        })
    }
}

/// Returns how long a holder relies on a lease: 1 % less, because its clock may be slow.
fn shorter(lease: Duration) -> Duration {
    lease - lease / 100
}

/// Returns how long a waiter watches a lease: 1 % more, because its clock may be fast.
fn longer(lease: Duration) -> Duration {
    lease + lease / 100
}
