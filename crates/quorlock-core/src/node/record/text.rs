//! The text of a record.

use std::fmt;
use std::str::FromStr;

use super::super::held::{Held, ReadWrite};
use super::super::keys::{Key, OwnKeys, Queue};
use super::{KEPT_MESSAGES, Record, Topic};
use crate::claim_version::ClaimVersion;
use crate::fencing::Token;
use crate::marker::{Marker, MarkerState, Nonce, Process};
use crate::message::Wake;
use crate::time::WallMillis;

/// The version of the form, which the first line names.
const FORM: &str = "quorlock/1";

/// The reason why a text is not a record.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// The record was written by a newer client, in a form that this one does not know.
    Newer {
        /// The form that the first line names.
        form: String,
    },
    /// The value was not written by a client of these locks, or was damaged.
    Strange {
        /// Number of the first line that is not valid, from 1.
        line: usize,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Newer { form } => write!(
                f,
                "the record has the form {form:?}, and this client knows {FORM}: use a newer version of it"
            ),
            RecordError::Strange { line } => write!(
                f,
                "line {line} of the record is not valid, so another program has written it: use another name, table or prefix"
            ),
        }
    }
}

impl std::error::Error for RecordError {}

impl Record {
    /// Returns the record as text, with the number of the write that stores it.
    ///
    /// The number is random, so the text of this write differs from that of all others. A client that got no reply to a
    /// write reads the record, and finds its own text there if the write was executed.
    #[must_use]
    pub fn encode(&self, write: u64) -> String {
        let mut lines = Lines(format!("{FORM} {write:016x}\n"));
        if self.clock != WallMillis::default() {
            lines.put(format_args!("clock {}", self.clock.0));
        }
        lines.own(&self.bare);
        if self.braced != OwnKeys::default() {
            lines.put(format_args!("braced"));
            lines.own(&self.braced);
        }
        if let Some(Key { value, expires }) = &self.shared.token {
            lines.put(format_args!("token {} {}", value.0, Until(*expires)));
        }
        if let Some(Key { value, expires }) = &self.shared.queue {
            lines.put(format_args!("queue {}", Until(*expires)));
            for (owner, alive) in value {
                lines.put(format_args!("waiter {owner} {}", alive.0));
            }
        }
        if let Some(marker) = &self.marker {
            lines.marker(marker);
        }
        if 0 < self.published {
            lines.put(format_args!("published {}", self.published));
        }
        for (topic, wake) in &self.messages {
            lines.put(format_args!("message {} {topic}", payload(*wake)));
        }
        lines.0
    }

    /// Reads a record and the number of the write that stored it.
    ///
    /// # Errors
    /// [`RecordError`] if the text is not a record in a form that this client knows.
    pub fn decode(text: &[u8]) -> Result<(Self, u64), RecordError> {
        let strange = |line| RecordError::Strange { line };
        let text = std::str::from_utf8(text).map_err(|_| strange(1))?;
        // A text without its last line feed was cut off.
        let text = text.strip_suffix('\n').ok_or_else(|| strange(1))?;
        let mut lines = text.split('\n');
        let head = lines.next().unwrap_or_default();
        let (form, write) = head.split_once(' ').unwrap_or((head, ""));
        if form != FORM {
            let version = form.strip_prefix("quorlock/").map(str::parse::<u32>);
            return Err(match version {
                Some(Ok(2..)) => RecordError::Newer {
                    form: form.to_owned(),
                },
                _ => strange(1),
            });
        }
        let write = u64::from_str_radix(write, 16).map_err(|_| strange(1))?;
        let mut reader = Reader::default();
        for (index, line) in lines.enumerate() {
            reader.read(line).ok_or_else(|| strange(index + 2))?;
        }
        Ok((reader.record, write))
    }
}

/// Reads the lines of a record, one after another.
#[derive(Default)]
struct Reader {
    record: Record,
    /// Whether the lines are about the name in braces.
    is_braced: bool,
}

impl Reader {
    /// Reads one line. Returns `None` if it is not valid.
    fn read(&mut self, line: &str) -> Option<()> {
        let mut words = Words(line.split(' '));
        let kind = words.0.next()?;
        let record = &mut self.record;
        let own = match self.is_braced {
            true => &mut record.braced,
            false => &mut record.bare,
        };
        match kind {
            "clock" => record.clock = WallMillis(words.next()?),
            "braced" => self.is_braced = true,
            "token" => {
                let value = Token(words.next()?);
                let expires = words.until()?;
                record.shared.token = Some(Key { value, expires });
            }
            "queue" => {
                let expires = words.until()?;
                let value = Queue::new();
                record.shared.queue = Some(Key { value, expires });
            }
            "waiter" => {
                let (owner, alive) = (words.next()?, WallMillis(words.next()?));
                let queue = record.shared.queue.as_mut()?;
                queue.value.push_back((owner, alive));
            }
            "marker" => record.marker = Some(words.marker()?),
            "published" => record.published = words.next()?,
            "message" => {
                let message = words.message()?;
                record.messages.push(message);
                // A watcher finds the number of a message by counting back from the last.
                let most = record.published.min(KEPT_MESSAGES as u64);
                (record.messages.len() as u64 <= most).then_some(())?;
            }
            _ => read_own(own, kind, &mut words)?,
        }
        words.0.next().is_none().then_some(())
    }
}

/// Reads a line about one of the two names.
fn read_own(own: &mut OwnKeys, kind: &str, words: &mut Words<'_>) -> Option<()> {
    let value = match kind {
        "plain" => {
            let (owner, count) = (words.next()?, words.next()?);
            Held::Plain { owner, count }
        }
        "strange" => Held::NotALock,
        "read-write" => Held::ReadWrite(ReadWrite::default()),
        "writer" => {
            let writer = (words.next()?, words.next()?);
            read_write(own)?.writer = Some(writer);
            return Some(());
        }
        "reader" => {
            let (owner, count) = (words.next()?, words.next()?);
            read_write(own)?.readers.insert(owner, count);
            return Some(());
        }
        "lease" => {
            let owner = words.next()?;
            let expires = words.until()?;
            own.reads.insert(owner, Key { value: (), expires });
            return Some(());
        }
        "version" => {
            own.version = Some(ClaimVersion {
                owner: words.next()?,
                number: words.next()?,
                lease_millis: words.next()?,
            });
            return Some(());
        }
        _ => return None,
    };
    let expires = words.until()?;
    own.claim = Some(Key { value, expires });
    Some(())
}

/// Returns the claims of the read-write lock, whose line precedes those of its writer and readers.
fn read_write(own: &mut OwnKeys) -> Option<&mut ReadWrite> {
    match &mut own.claim.as_mut()?.value {
        Held::ReadWrite(held) => Some(held),
        Held::Plain { .. } | Held::NotALock => None,
    }
}

const fn payload(wake: Wake) -> u8 {
    match wake {
        Wake::Unlocked => 0,
        Wake::ReadersMayEnter => 1,
    }
}

/// The text of a record, line by line.
struct Lines(String);

impl Lines {
    fn put(&mut self, line: fmt::Arguments<'_>) {
        use fmt::Write;
        writeln!(self.0, "{line}").expect("BUG: a string takes every text");
    }

    fn own(&mut self, own: &OwnKeys) {
        if let Some(Key { value, expires }) = &own.claim {
            let until = Until(*expires);
            match value {
                Held::Plain { owner, count } => {
                    self.put(format_args!("plain {owner} {count} {until}"));
                }
                Held::NotALock => self.put(format_args!("strange {until}")),
                Held::ReadWrite(held) => {
                    self.put(format_args!("read-write {until}"));
                    if let Some((owner, count)) = held.writer {
                        self.put(format_args!("writer {owner} {count}"));
                    }
                    for (owner, count) in &held.readers {
                        self.put(format_args!("reader {owner} {count}"));
                    }
                }
            }
        }
        for (owner, key) in &own.reads {
            self.put(format_args!("lease {owner} {}", Until(key.expires)));
        }
        if let Some(version) = own.version {
            let ClaimVersion {
                owner,
                number,
                lease_millis,
            } = version;
            self.put(format_args!("version {owner} {number} {lease_millis}"));
        }
    }

    fn marker(&mut self, marker: &Marker) {
        let state = match marker.state {
            MarkerState::Observing => "observing",
            MarkerState::Confirmed => "confirmed",
        };
        self.put(format_args!(
            "marker {} {} {} {state} {}",
            marker.process.0,
            marker.nonce.get(),
            marker.figures,
            marker.expires.0
        ));
    }
}

/// When a key expires, as text: milliseconds of the record's clock, or `-` for never.
struct Until(Option<WallMillis>);

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(at) => fmt::Display::fmt(&at.0, f),
            None => f.write_str("-"),
        }
    }
}

/// The words of a line.
struct Words<'a>(std::str::Split<'a, char>);

impl Words<'_> {
    fn next<T: FromStr>(&mut self) -> Option<T> {
        self.0.next()?.parse().ok()
    }

    fn until(&mut self) -> Option<Option<WallMillis>> {
        match self.0.next()? {
            "-" => Some(None),
            word => Some(Some(WallMillis(word.parse().ok()?))),
        }
    }

    fn marker(&mut self) -> Option<Marker> {
        Some(Marker {
            process: Process(self.next()?),
            nonce: Nonce::new(self.next()?),
            figures: self.next()?,
            state: match self.0.next()? {
                "observing" => MarkerState::Observing,
                "confirmed" => MarkerState::Confirmed,
                _ => return None,
            },
            expires: WallMillis(self.next()?),
        })
    }

    fn message(&mut self) -> Option<(Topic, Wake)> {
        let wake = match self.0.next()? {
            "0" => Wake::Unlocked,
            "1" => Wake::ReadersMayEnter,
            _ => return None,
        };
        let topic = match self.0.next()? {
            "lock" => Topic::Lock,
            "waiter" => Topic::Waiter(self.next()?),
            "read-write" => Topic::ReadWrite,
            _ => return None,
        };
        Some((topic, wake))
    }
}
