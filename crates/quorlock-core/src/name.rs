//! The names of locks.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 512;

/// The name of a lock: 1 to [`LONGEST_NAME`] bytes without NUL. Cheap to clone.
///
/// A name need not be text, because nodes store bytes. Braces, spaces and any Unicode are allowed. A node may be
/// unable to store some names ([`Transport::slot`](crate::transport::Transport::slot)).
///
/// Names with the same bytes are equal, whatever their [namespaces](Name::within).
#[derive(Clone)]
pub struct Name {
    bytes: Arc<[u8]>,
    /// Length of the namespace, with which the name begins.
    namespace: u16,
}

impl Name {
    /// Returns the name with this text or these bytes.
    ///
    /// # Errors
    /// [`NameError`] if it is empty, too long, or contains a NUL.
    pub fn new(name: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let name = name.as_ref();
        if name.is_empty() {
            Err(NameError::Empty)
        } else if name.len() > LONGEST_NAME {
            Err(NameError::TooLong { bytes: name.len() })
        } else if name.contains(&0) {
            Err(NameError::Nul)
        } else {
            Ok(Name {
                bytes: name.into(),
                namespace: 0,
            })
        }
    }

    /// Returns the name `name` within a namespace: it begins with the namespace, and so does every other key and channel
    /// that a node derives from it. `name` may be empty if the namespace is not.
    ///
    /// # Errors
    /// Those of [`Name::new`], for the two together.
    pub fn within(namespace: &[u8], name: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let whole = Name::new([namespace, name.as_ref()].concat())?;
        // A name has at most 512 bytes.
        let namespace = u16::try_from(namespace.len()).unwrap_or(u16::MAX);
        Ok(Name { namespace, ..whole })
    }

    /// Returns the namespace, which is empty by default, and the rest of the name.
    #[must_use]
    pub fn split(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(usize::from(self.namespace))
    }

    /// Returns the name as it is on the wire.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the part of the name from which the keys beside its claim are derived: `x` for both `x` and `{x}`.
    ///
    /// Names with the same stem are twins: they have one token counter, one queue and the same channels, and only their
    /// claims differ.
    #[must_use]
    pub fn stem(&self) -> &[u8] {
        match self.as_bytes() {
            [b'{', inner @ .., b'}'] if !inner.is_empty() && !inner.contains(&b'{') => inner,
            name => name,
        }
    }

    /// Returns the name as text, if it is valid UTF-8.
    #[must_use]
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    /// Returns the name for people to read, as it is displayed. Valid UTF-8 is returned unchanged. In other names each
    /// invalid byte is written as `\xff`. Two names may have the same text.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self.to_str() {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(escaped(&self.bytes)),
        }
    }
}

/// Returns the name with invalid bytes escaped. A backslash in the name is doubled, so that it cannot be confused with
/// an escape.
fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(4 * name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl AsRef<[u8]> for Name {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_str() {
            Some(text) => fmt::Debug::fmt(text, f),
            None => write!(f, "b\"{}\"", self.bytes.escape_ascii()),
        }
    }
}

/// The reason why a text cannot be the name of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    Empty,
    /// The name has more than [`LONGEST_NAME`] bytes.
    TooLong {
        /// Length of the rejected name, in bytes.
        bytes: usize,
    },
    /// The name contains a NUL.
    Nul,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Empty => f.write_str("a lock needs a name: the given one is empty"),
            NameError::TooLong { bytes } => write!(
                f,
                "the name has {bytes} bytes, at most {LONGEST_NAME} are allowed: name a hash of it instead"
            ),
            NameError::Nul => f.write_str("the name contains a NUL character: leave it out"),
        }
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive() {
        assert_eq!(Name::new(""), Err(NameError::Empty));
        assert!(Name::new("x".repeat(LONGEST_NAME)).is_ok());
        assert_eq!(
            Name::new("x".repeat(LONGEST_NAME + 1)),
            Err(NameError::TooLong { bytes: 513 })
        );
        assert_eq!(Name::new("a\0b"), Err(NameError::Nul));
    }

    #[test]
    fn a_namespace_is_the_beginning_of_a_name() {
        let name = Name::within(b"shop:", "x").unwrap();
        assert_eq!(name.split(), (&b"shop:"[..], &b"x"[..]));
        assert_eq!(name, Name::new("shop:x").unwrap());
        let plain = Name::within(b"", "x").unwrap();
        assert_eq!(plain.split(), (&b""[..], &b"x"[..]));
        assert_eq!(Name::within(b"", ""), Err(NameError::Empty));
        let most = "x".repeat(LONGEST_NAME - 5);
        assert!(Name::within(b"shop:", &most).is_ok());
        let bytes = LONGEST_NAME + 1;
        assert_eq!(
            Name::within(b"shop:", most + "x"),
            Err(NameError::TooLong { bytes })
        );
    }

    #[test]
    fn twins_have_one_stem() {
        let stem = |name: &str| {
            let name = Name::new(name).unwrap();
            String::from_utf8(name.stem().to_vec()).unwrap()
        };
        for (name, expected) in [
            ("x", "x"),
            ("{x}", "x"),
            ("a}", "a}"),
            ("{a}}", "a}"),
            ("{}", "{}"),
            ("{x}:7", "{x}:7"),
            ("{x", "{x"),
            ("{{x}}", "{{x}}"),
            ("{x}{y}", "{x}{y}"),
        ] {
            assert_eq!(stem(name), expected, "{name}");
        }
    }

    #[test]
    fn braces_spaces_and_unicode_are_names() {
        for name in ["{tag}:x", "}{", " ", "заказ/42", "🔒"] {
            let name_of = Name::new(name).unwrap();
            assert_eq!(name_of.to_str(), Some(name));
            assert_eq!(name_of.to_string(), name);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_names_and_are_shown_escaped() {
        let name = Name::new(b"orders/\xff\\\xc3\xbc\x80").unwrap();
        assert_eq!(name.as_bytes(), b"orders/\xff\\\xc3\xbc\x80");
        assert_eq!(name.to_str(), None);
        assert_eq!(name.to_string(), r"orders/\xff\\ü\x80");
        assert_eq!(format!("{name:?}"), r#"b"orders/\xff\\\xc3\xbc\x80""#);
        // This text reads the same but is a different name.
        let text = Name::new(name.to_string()).unwrap();
        assert_eq!(text.to_string(), name.to_string());
        assert_ne!(text, name);
        assert_eq!(Name::new(b"\xff\0"), Err(NameError::Nul));
        assert_eq!(
            Name::new([0xff; LONGEST_NAME + 1]),
            Err(NameError::TooLong { bytes: 513 })
        );
    }
}
