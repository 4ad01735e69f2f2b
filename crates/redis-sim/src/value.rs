//! The values of keys.

use std::collections::VecDeque;

/// A value of one of the types of Redis.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Text(Vec<u8>),
    Hash(Hash),
    List(List),
    Set(Set),
    SortedSet(SortedSet),
}

impl Value {
    /// Returns the name of its type, as the command `TYPE` reports it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Text(_) => "string",
            Value::Hash(_) => "hash",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::SortedSet(_) => "zset",
        }
    }

    /// Returns whether it is an empty collection, whose key does not exist.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Value::Text(_) => false,
            Value::Hash(hash) => hash.0.is_empty(),
            Value::List(list) => list.0.is_empty(),
            Value::Set(set) => set.0.is_empty(),
            Value::SortedSet(set) => set.0.is_empty(),
        }
    }
}

/// A type of collection.
pub(crate) trait Collection: Default {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
}

macro_rules! collections {
    ($($kind:ident),*) => {$(
        impl Collection for $kind {
            fn of(value: &Value) -> Option<&Self> {
                if let Value::$kind(it) = value { Some(it) } else { None }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                if let Value::$kind(it) = value { Some(it) } else { None }
            }

            fn into_value(self) -> Value {
                Value::$kind(self)
            }
        }
    )*};
}

collections!(Hash, List, Set, SortedSet);

/// Fields and their values, in the order of insertion, as Redis stores a small hash.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Hash(Vec<(Vec<u8>, Vec<u8>)>);

impl Hash {
    pub(crate) fn get(&self, field: &[u8]) -> Option<&Vec<u8>> {
        self.iter()
            .find_map(|(key, value)| (key == field).then_some(value))
    }

    /// Sets a field. Returns whether it is new.
    pub(crate) fn set(&mut self, field: &[u8], value: Vec<u8>) -> bool {
        if let Some((_, old)) = self.0.iter_mut().find(|(key, _)| key == field) {
            *old = value;
            return false;
        }
        self.0.push((field.to_vec(), value));
        true
    }

    /// Removes a field. Returns whether it existed.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        let at = self.0.iter().position(|(key, _)| key == field);
        at.map(|at| self.0.remove(at)).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Vec<u8>, Vec<u8>)> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Elements in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct List(pub(crate) VecDeque<Vec<u8>>);

/// Distinct elements, in the order of insertion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Set(Vec<Vec<u8>>);

impl Set {
    pub(crate) fn contains(&self, member: &[u8]) -> bool {
        self.0.iter().any(|other| other == member)
    }

    /// Adds an element. Returns whether it is new.
    pub(crate) fn add(&mut self, member: &[u8]) -> bool {
        let is_new = !self.contains(member);
        if is_new {
            self.0.push(member.to_vec());
        }
        is_new
    }

    /// Removes an element. Returns whether it existed.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let at = self.0.iter().position(|other| other == member);
        at.map(|at| self.0.remove(at)).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Members in the order of their scores; members with the same score are in the order of their bytes.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct SortedSet(Vec<(f64, Vec<u8>)>);

impl SortedSet {
    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        self.iter()
            .find_map(|(score, other)| (other == member).then_some(*score))
    }

    /// Sets the score of a member, which is added if it is new.
    pub(crate) fn set(&mut self, member: &[u8], score: f64) {
        self.remove(member);
        let is_before =
            |(other, name): &(f64, Vec<u8>)| (*other, name.as_slice()) < (score, member);
        let at = self.0.partition_point(is_before);
        self.0.insert(at, (score, member.to_vec()));
    }

    /// Removes a member. Returns whether it existed.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let at = self.rank(member);
        at.map(|at| self.0.remove(at)).is_some()
    }

    /// Returns the number of members before it; `None` if it does not exist.
    pub(crate) fn rank(&self, member: &[u8]) -> Option<usize> {
        self.iter().position(|(_, other)| other == member)
    }

    /// Returns all members and their scores, in order.
    pub(crate) fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = &(f64, Vec<u8>)> + ExactSizeIterator {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
