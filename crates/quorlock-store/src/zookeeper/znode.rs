//! What is in which znode.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use zookeeper_client::{Acls, Stat};

use super::error::Failure;
use crate::store::{Draft, Key};

/// What the name of a znode has of a key as it is. A dot is not among it: `.` and `..` are no names.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b':');

/// The length of the number of a write, in hexadecimal digits.
const DIGITS: usize = 16;

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
        format!("{}/{}", self.path, percent_encode(key.as_bytes(), NAME))
    }

    /// Returns who can use the znodes that are made.
    pub(super) fn acls(&self) -> Acls<'static> {
        match self.is_private {
            true => Acls::creator_all(),
            false => Acls::anyone_all(),
        }
    }
}

/// Returns the key of a record whose znode has this name; `None` if no key has it.
pub(super) fn key(name: &str) -> Option<Key> {
    let bytes: Vec<u8> = percent_decode_str(name).collect();
    let is_key = percent_encode(&bytes, NAME).to_string() == name;
    is_key.then(|| Key::new(bytes))
}

/// Returns the path of the child that a record has while this is the number of its last write.
pub(super) fn mark(path: &str, number: u64) -> String {
    format!("{path}/{number:0DIGITS$x}")
}

/// Returns the data of the znode of a record: the number of its write, in a line of its own, and the record.
pub(super) fn data(draft: &Draft) -> Vec<u8> {
    let mut data = format!("{:0DIGITS$x}\n", draft.number).into_bytes();
    data.extend_from_slice(&draft.record);
    data
}

/// A record.
pub(super) struct Found {
    /// The number of its write.
    pub(super) number: u64,
    pub(super) record: Vec<u8>,
}

impl Found {
    pub(super) fn parse(path: &str, mut data: Vec<u8>, stat: &Stat) -> Result<Self, Failure> {
        let parsed = parse(&data);
        // Without its child, no client could write it.
        let number = parsed.filter(|_| stat.num_children == 1);
        let number = number.ok_or_else(|| Failure::Strange(path.to_owned()))?;
        data.drain(..=DIGITS);
        Ok(Found {
            number,
            record: data,
        })
    }
}

fn parse(data: &[u8]) -> Option<u64> {
    let (digits, rest) = data.split_at_checked(DIGITS)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    rest.starts_with(b"\n").then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_znode_of_its_own() {
        let folder = Folder::new(b"a/b", false).unwrap();
        for (bytes, path) in [
            (&b"orders/42"[..], "/a/b/orders%2F42"),
            (b".", "/a/b/%2E"),
            (b"%2E", "/a/b/%252E"),
            (b"A_b-c:1", "/a/b/A_b-c:1"),
            (b"\xff\x01", "/a/b/%FF%01"),
        ] {
            let written = folder.path(&Key::new(bytes));
            assert_eq!(written, path);
            let name = written.rsplit('/').next().unwrap();
            assert_eq!(key(name), Some(Key::new(bytes)));
        }
        assert_eq!(key("a.b"), None);
        assert_eq!(key("%2f"), None);
    }

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
