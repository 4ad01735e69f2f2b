//! What is in which znode.

use zookeeper_client::{Acls, Stat};

use super::error::Failure;
use crate::numbered;
use crate::store::Key;

/// The znode whose children are the records.
#[derive(Clone)]
pub(super) struct Folder {
    pub(super) path: String,
    /// Whether only the user of the address can use the znodes.
    is_private: bool,
}

impl Folder {
    /// Returns the folder of an address. The error is a predicate whose subject is the address.
    pub(super) fn new(folder: &[u8], is_private: bool) -> Result<Self, &'static str> {
        let is_fit = |part: &&str| !["", ".", "..", "zookeeper"].contains(part);
        let text = std::str::from_utf8(folder).map_err(|_| "has a prefix that is not UTF-8")?;
        if !text.split('/').all(|part| is_fit(&part)) || text.chars().any(char::is_control) {
            return Err("has a prefix that is no path of a znode");
        }
        Ok(Folder {
            path: format!("/{text}"),
            is_private,
        })
    }

    /// Returns the path of a record.
    pub(super) fn path(&self, key: &Key) -> String {
        format!("{}/{}", self.path, numbered::name(key))
    }

    /// Returns who can use the znodes that are made.
    pub(super) fn acls(&self) -> Acls<'static> {
        match self.is_private {
            true => Acls::creator_all(),
            false => Acls::anyone_all(),
        }
    }
}

/// Returns the path of the child that a record has while this is the number of its last write.
pub(super) fn mark(path: &str, number: u64) -> String {
    format!("{path}/{}", numbered::digits(number))
}

/// A record.
pub(super) struct Found {
    /// The number of its write.
    pub(super) number: u64,
    pub(super) record: Vec<u8>,
}

impl Found {
    pub(super) fn parse(path: &str, data: Vec<u8>, stat: &Stat) -> Result<Self, Failure> {
        let parsed = numbered::parse(data);
        // Without its child, no client could write it.
        let parsed = parsed.filter(|_| stat.num_children == 1);
        let (number, record) = parsed.ok_or_else(|| Failure::Strange(path.to_owned()))?;
        Ok(Found { number, record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_path() {
        for wrong in [
            &b""[..],
            b"/a",
            b"a/",
            b"a//b",
            b"a/../b",
            b"a\x01",
            b"\xff",
        ] {
            assert!(Folder::new(wrong, false).is_err(), "{wrong:?}");
        }
    }
}
