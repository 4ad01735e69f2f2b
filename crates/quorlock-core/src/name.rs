//! What is locked.

use std::fmt;
use std::sync::Arc;

use crate::reserved;

/// The longest name, in bytes of UTF-8.
pub const LONGEST_NAME: usize = 512;

/// The name of a lock: 1 to [`LONGEST_NAME`] bytes without NUL. Cheap to clone.
///
/// Braces, spaces and any Unicode are fine. On the wire it is the key of the claim, to the letter, so that a key under
/// which something else is kept cannot be one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks and takes a name.
    ///
    /// # Errors
    /// [`NameError`] when it is empty, too long, holds a NUL, or is a key under which something else is kept.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        if name.is_empty() {
            Err(NameError::Empty)
        } else if name.len() > LONGEST_NAME {
            Err(NameError::TooLong { bytes: name.len() })
        } else if name.contains('\0') {
            Err(NameError::Nul)
        } else if let Some(kept) = reserved::kept_under(name) {
            Err(NameError::Reserved { kept })
        } else {
            Ok(Name(name.into()))
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Name> for Arc<str> {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Why a text cannot be the name of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NameError {
    /// It has no characters.
    Empty,
    /// It has more than [`LONGEST_NAME`] bytes.
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// It holds a NUL character.
    Nul,
    /// It is a key under which nodes keep something else.
    Reserved {
        /// What they keep there.
        kept: &'static str,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Empty => f.write_str("a lock needs a name: the given one is empty"),
            NameError::TooLong { bytes } => write!(
                f,
                "the name has {bytes} bytes, at most {LONGEST_NAME} are allowed: name a hash of it instead"
            ),
            NameError::Nul => f.write_str("the name holds a NUL character: leave it out"),
            NameError::Reserved { kept } => write!(
                f,
                "the name is a key under which {kept} is kept: take another, for example with a prefix"
            ),
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
        let kept = "another name's token counter";
        let error = Name::new("redisson_lock_token:{x}");
        assert_eq!(error, Err(NameError::Reserved { kept }));
    }

    #[test]
    fn braces_spaces_and_unicode_are_names() {
        for name in ["{tag}:x", "}{", " ", "заказ/42", "🔒"] {
            assert_eq!(Name::new(name).unwrap().as_str(), name);
        }
    }
}
