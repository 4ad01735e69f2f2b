//! A command on its way to the data, from a connection or from a script.

use crate::data::Data;
use crate::number;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::value::{Collection, Value};

/// The answer of a command.
pub(crate) type Answer = Result<Reply, Refusal>;

/// A command that needs keys, clock and channels: a script can call it, too.
pub(crate) type OnData = fn(&mut Call<'_>) -> Answer;

/// What is known of a command before it is executed.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// The number of its words, itself included; a negative number says at least.
    pub(crate) arity: i32,
    pub(crate) flags: &'static [Flag],
}

impl Shape {
    pub(crate) fn is(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether it can have this number of words.
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
    /// The function that does it, unless it needs a connection.
    pub(crate) run: Option<OnData>,
}

/// Finds a command by its name.
pub(crate) type Lookup = fn(&[u8]) -> Option<ScriptCommand>;

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

/// A command on its way to the data.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) data: &'a mut Data,
    pub(crate) db: &'a mut usize,
    pub(crate) words: &'a [Vec<u8>],
}

impl<'a> Call<'a> {
    /// A word of the command, itself the first. Its arity was checked: one that is not there is empty.
    pub(crate) fn word(&self, at: usize) -> &'a [u8] {
        self.words.get(at).map_or(b"", Vec::as_slice)
    }

    /// The words from here on.
    pub(crate) fn words_from(&self, at: usize) -> &'a [Vec<u8>] {
        self.words.get(at..).unwrap_or_default()
    }

    /// Whether a word is this one, in whatever case.
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

    /// Changes a collection, which is made if need be.
    pub(crate) fn edit<C: Collection, R>(
        &mut self,
        key: &[u8],
        edit: impl FnOnce(&mut C) -> R,
    ) -> Result<R, Refusal> {
        self.data.edit(*self.db, key, edit)
    }
}

/// A place in a sequence, from its end if negative.
pub(crate) fn place(at: i64, len: usize) -> i64 {
    if at < 0 {
        at.saturating_add(i64::try_from(len).unwrap_or(i64::MAX))
    } else {
        at
    }
}

/// The range from `from` to `to`, both included and from the end if negative.
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
