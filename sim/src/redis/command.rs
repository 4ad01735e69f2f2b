//! The commands: what they are called, who may use them when, and what does them.

mod admin;
mod client;
mod hashes;
mod keys;
mod lists;
mod pubsub;
mod scripting;
mod sets;
mod sorted_sets;
mod strings;
mod transactions;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::data::Data;
use super::number;
use super::reply::Reply;
use super::server::Server;
use super::session::SessionId;
use super::value::{Collection, Value};

/// One command.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// How many words it has, itself included; a negative number says at least.
    arity: i32,
    flags: &'static [Flag],
    pub(crate) run: Run,
}

/// What a command needs to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// Keys, clock and channels: a script can do it, too.
    OnData(OnData),
    /// A connection. Without a reply it has written what it had to say.
    OnConnection(OnConnection),
}

/// What a command says.
pub(crate) type Answer = Result<Reply, Refusal>;
/// The same, or nothing any more.
pub(crate) type Said = Result<Option<Reply>, Refusal>;

pub(crate) type OnData = fn(&mut Call<'_>) -> Answer;
pub(crate) type OnConnection = fn(&mut Server, SessionId, &[Vec<u8>]) -> Said;

/// Who may use a command when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flag {
    /// It changes keys: no replica takes it.
    Write,
    /// It may need memory.
    Grows,
    /// No script may use it.
    NotInScripts,
    /// Also while data is loaded.
    WhileLoading,
    /// Also while a script does not end.
    WhileBusy,
    /// Also before logging in.
    BeforeLogin,
    /// Also on a connection of RESP2 that has subscriptions.
    WhileSubscribed,
}

const fn read(name: &'static str, arity: i32, run: OnData) -> Command {
    on_data(name, arity, &[], run)
}

const fn write(name: &'static str, arity: i32, run: OnData) -> Command {
    on_data(name, arity, &[Flag::Write], run)
}

/// Writes, and may need memory.
const fn grow(name: &'static str, arity: i32, run: OnData) -> Command {
    on_data(name, arity, &[Flag::Write, Flag::Grows], run)
}

const fn on_data(name: &'static str, arity: i32, flags: &'static [Flag], run: OnData) -> Command {
    let run = Run::OnData(run);
    Command {
        name,
        arity,
        flags,
        run,
    }
}

const fn on_connection(
    name: &'static str,
    arity: i32,
    flags: &'static [Flag],
    run: OnConnection,
) -> Command {
    let run = Run::OnConnection(run);
    Command {
        name,
        arity,
        flags,
        run,
    }
}

impl Command {
    pub(crate) fn is(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether it can have so many words.
    pub(crate) fn takes(&self, words: usize) -> bool {
        let words = i32::try_from(words).unwrap_or(i32::MAX);
        if self.arity < 0 {
            -self.arity <= words
        } else {
            self.arity == words
        }
    }
}

static TABLE: LazyLock<BTreeMap<&'static str, &'static Command>> = LazyLock::new(|| {
    let all = [
        admin::COMMANDS,
        client::COMMANDS,
        hashes::COMMANDS,
        keys::COMMANDS,
        lists::COMMANDS,
        pubsub::COMMANDS,
        scripting::COMMANDS,
        sets::COMMANDS,
        sorted_sets::COMMANDS,
        strings::COMMANDS,
        transactions::COMMANDS,
    ];
    let all = all.into_iter().flatten();
    all.map(|command| (command.name, command)).collect()
});

/// The command of this name, in whatever case it is written.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; 32];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    TABLE.get(std::str::from_utf8(lower).ok()?).copied()
}

/// An error that a command answers with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal(pub(crate) Cow<'static, str>);

impl Refusal {
    pub(crate) const WRONG_TYPE: Refusal =
        Refusal::of("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub(crate) const NOT_AN_INTEGER: Refusal =
        Refusal::of("ERR value is not an integer or out of range");
    pub(crate) const NOT_A_FLOAT: Refusal = Refusal::of("ERR value is not a valid float");
    pub(crate) const READ_ONLY: Refusal =
        Refusal::of("READONLY You can't write against a read only replica.");
    pub(crate) const OUT_OF_MEMORY: Refusal =
        Refusal::of("OOM command not allowed when used memory > 'maxmemory'.");
    pub(crate) const SYNTAX: Refusal = Refusal::of("ERR syntax error");

    pub(crate) const fn of(text: &'static str) -> Self {
        Refusal(Cow::Borrowed(text))
    }

    pub(crate) fn arity(name: &str) -> Self {
        Refusal(format!("ERR wrong number of arguments for '{name}' command").into())
    }

    fn unknown_subcommand(words: &[Vec<u8>]) -> Self {
        let word = |at: usize| String::from_utf8_lossy(words.get(at).map_or(b"", Vec::as_slice));
        let family = word(0).to_uppercase();
        Refusal(format!("ERR unknown subcommand '{}'. Try {family} HELP.", word(1)).into())
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Reply {
        Reply::error(refusal.0)
    }
}

/// A command on its way to the data.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) data: &'a mut Data,
    pub(crate) db: &'a mut usize,
    pub(crate) words: &'a [Vec<u8>],
}

impl<'a> Call<'a> {
    /// A word of the command, itself the first. Its arity was checked: one that is not there is empty.
    fn word(&self, at: usize) -> &'a [u8] {
        self.words.get(at).map_or(b"", Vec::as_slice)
    }

    /// The words from here on.
    fn words_from(&self, at: usize) -> &'a [Vec<u8>] {
        self.words.get(at..).unwrap_or_default()
    }

    /// Whether a word is this one, in whatever case.
    fn word_is(&self, at: usize, word: &str) -> bool {
        self.word(at).eq_ignore_ascii_case(word.as_bytes())
    }

    fn int(&self, at: usize) -> Result<i64, Refusal> {
        number::parse_int(self.word(at)).ok_or(Refusal::NOT_AN_INTEGER)
    }

    fn now_millis(&self) -> i64 {
        self.data.now.millis()
    }

    fn value(&self, key: &[u8]) -> Option<&Value> {
        self.data.entry(*self.db, key).map(|entry| &entry.value)
    }

    fn text(&self, key: &[u8]) -> Result<Option<&Vec<u8>>, Refusal> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(Refusal::WRONG_TYPE),
        }
    }

    fn collection<C: Collection>(&self, key: &[u8]) -> Result<Option<&C>, Refusal> {
        let value = self.value(key);
        value
            .map(|value| C::of(value).ok_or(Refusal::WRONG_TYPE))
            .transpose()
    }

    /// Changes a collection, which is made if need be.
    fn edit<C: Collection, R>(
        &mut self,
        key: &[u8],
        edit: impl FnOnce(&mut C) -> R,
    ) -> Result<R, Refusal> {
        self.data.edit(*self.db, key, edit)
    }
}

/// A place in a sequence, from its end if negative.
fn place(at: i64, len: usize) -> i64 {
    if at < 0 {
        at.saturating_add(i64::try_from(len).unwrap_or(i64::MAX))
    } else {
        at
    }
}

/// The range from `from` to `to`, both included and from the end if negative.
fn range(from: i64, to: i64, len: usize) -> std::ops::Range<usize> {
    let from = usize::try_from(place(from, len).max(0)).unwrap_or(usize::MAX);
    let to = usize::try_from(place(to, len).saturating_add(1).max(0)).unwrap_or(usize::MAX);
    from.min(len)..to.min(len).max(from.min(len))
}

/// Why a call cannot be looked up: the first words of it are repeated.
pub(crate) fn unknown(words: &[Vec<u8>]) -> Refusal {
    const MOST: usize = 128;
    let cut = |word: &[u8], most: usize| {
        String::from_utf8_lossy(word.get(..most.min(word.len())).unwrap_or_default()).into_owned()
    };
    let mut words = words.iter();
    let name = cut(words.next().map_or(b"", Vec::as_slice), MOST);
    let mut said = String::new();
    for word in words {
        if MOST <= said.len() {
            break;
        }
        said += &format!("'{}' ", cut(word, MOST - said.len()));
    }
    Refusal(format!("ERR unknown command '{name}', with args beginning with: {said}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_may_count_from_the_end_and_reach_too_far() {
        assert_eq!(range(0, -1, 3), 0..3);
        assert_eq!(range(-2, -1, 3), 1..3);
        assert_eq!(range(-9, 9, 3), 0..3);
        assert_eq!(range(2, 1, 3), 2..2);
        assert_eq!(range(0, 0, 0), 0..0);
    }

    #[test]
    fn a_command_is_found_in_any_case() {
        assert_eq!(find(b"pExpire").map(|c| c.name), Some("pexpire"));
        assert!(find(b"pexpir").is_none());
        assert!(find(&[b'a'; 100]).is_none());
    }
}
