//! The call of a command, from a connection or from a script.

use crate::data::Data;
use crate::number;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::value::{Collection, Value};

/// The result of a command.
pub(crate) type Answer = Result<Reply, Refusal>;

/// The function of a command that needs keys, clock and channels. A script can call it, too.
pub(crate) type OnData = fn(&mut Call<'_>) -> Answer;

/// The properties of a command that are checked before it is executed.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Number of its words, including its name. A negative number is a minimum.
    pub(crate) arity: i32,
    pub(crate) flags: &'static [Flag],
}

impl Shape {
    pub(crate) fn is(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Returns whether it can have this number of words.
    pub(crate) fn takes(&self, words: usize) -> bool {
        let words = i32::try_from(words).unwrap_or(i32::MAX);
        if self.arity < 0 {
            -self.arity <= words
        } else {
            self.arity == words
        }
    }
}

/// A command as a script finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptCommand {
    pub(crate) shape: &'static Shape,
    /// Function that executes it, unless it needs a connection.
    pub(crate) run: Option<OnData>,
}

/// A function that finds a command by its name.
pub(crate) type Lookup = fn(&[u8]) -> Option<ScriptCommand>;

/// A condition on the use of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flag {
    /// The command changes keys: replicas refuse it.
    Write,
    /// The command may need memory.
    Grows,
    /// Scripts may not use the command.
    NotInScripts,
    /// The command is allowed while data is being loaded.
    WhileLoading,
    /// The command is allowed while a script does not end.
    WhileBusy,
    /// The command is allowed before logging in.
    BeforeLogin,
    /// The command is allowed on a RESP2 connection that has subscriptions.
    WhileSubscribed,
}

/// The call of a command.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) data: &'a mut Data,
    pub(crate) db: &'a mut usize,
    pub(crate) words: &'a [Vec<u8>],
}

impl<'a> Call<'a> {
    /// Returns a word of the command; word 0 is its name. The arity was checked, so a missing word is an optional one,
    /// and empty.
    pub(crate) fn word(&self, at: usize) -> &'a [u8] {
        self.words.get(at).map_or(b"", Vec::as_slice)
    }

    /// Returns the words from this index on.
    pub(crate) fn words_from(&self, at: usize) -> &'a [Vec<u8>] {
        self.words.get(at..).unwrap_or_default()
    }

    /// Compares a word with this one, ignoring case.
    pub(crate) fn word_is(&self, at: usize, word: &str) -> bool {
        self.word(at).eq_ignore_ascii_case(word.as_bytes())
    }

    pub(crate) fn int(&self, at: usize) -> Result<i64, Refusal> {
        number::parse_int(self.word(at)).ok_or(Refusal::NOT_AN_INTEGER)
    }

    pub(crate) fn now_millis(&self) -> i64 {
        self.data.now.millis()
    }

    pub(crate) fn value(&self, key: &[u8]) -> Option<&Value> {
        self.data.entry(*self.db, key).map(|entry| &entry.value)
    }

    pub(crate) fn text(&self, key: &[u8]) -> Result<Option<&Vec<u8>>, Refusal> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(Refusal::WRONG_TYPE),
        }
    }

    pub(crate) fn collection<C: Collection>(&self, key: &[u8]) -> Result<Option<&C>, Refusal> {
        let value = self.value(key);
        value
            .map(|value| C::of(value).ok_or(Refusal::WRONG_TYPE))
            .transpose()
    }

    /// Changes a collection, which is created if needed.
    pub(crate) fn edit<C: Collection, R>(
        &mut self,
        key: &[u8],
        edit: impl FnOnce(&mut C) -> R,
    ) -> Result<R, Refusal> {
        self.data.edit(*self.db, key, edit)
    }
}

/// Converts an index, which counts from the end of the sequence if it is negative.
pub(crate) fn place(at: i64, len: usize) -> i64 {
    if at < 0 {
        at.saturating_add(i64::try_from(len).unwrap_or(i64::MAX))
    } else {
        at
    }
}

/// Returns the range from `from` to `to`, both included, and counting from the end if negative.
pub(crate) fn range(from: i64, to: i64, len: usize) -> std::ops::Range<usize> {
    let from = usize::try_from(place(from, len).max(0)).unwrap_or(usize::MAX);
    let to = usize::try_from(place(to, len).saturating_add(1).max(0)).unwrap_or(usize::MAX);
    from.min(len)..to.min(len).max(from.min(len))
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
}
