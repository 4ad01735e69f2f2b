//! The names of a semaphore's permits.

use quorlock_core::name::{LONGEST_NAME, Name};

use crate::error::{AcquireError, ConfigError};

/// The name and the number that a user gave to a semaphore.
#[derive(Debug)]
pub(crate) struct PermitNames {
    pub(super) given: Box<[u8]>,
    pub(super) permits: usize,
    base: Vec<u8>,
}

/// The largest number of permits.
pub(super) const MOST_PERMITS: usize = 1_000;

/// The longest addition to a name.
const LONGEST_ADDITION: usize = "{}:permit:999".len();

impl PermitNames {
    /// Returns names with a hash tag.
    ///
    /// Those of two semaphores are different. All that begin with `{` and end with `}` before the addition are put into braces
    /// here, because no name in braces is left as it is.
    pub(crate) fn new(name: impl AsRef<[u8]>, permits: usize) -> Self {
        let name = name.as_ref();
        let is_in_braces = name.starts_with(b"{") && name.ends_with(b"}");
        let base = match has_tag(name) && !is_in_braces {
            true => [name, b":permit"].concat(),
            false => [b"{", name, b"}:permit"].concat(),
        };
        PermitNames {
            given: name.into(),
            permits,
            base,
        }
    }

    /// Returns names without a hash tag of their own, for nodes that store all names under tags.
    pub(crate) fn without_tag(self) -> Self {
        let base = [&*self.given, b":permit"].concat();
        PermitNames { base, ..self }
    }

    /// Returns the name from which those of the permits are made, and under which an owner remembers the permit that it holds.
    pub(crate) fn base(&self) -> &[u8] {
        &self.base
    }

    /// Returns the names of the permits, as a client with a prefix of this many bytes can use them.
    ///
    /// # Errors
    /// [`ConfigError`] if the name or the number is invalid.
    pub(crate) fn all(
        &self,
        prefix_bytes: usize,
    ) -> Result<impl Iterator<Item = Vec<u8>>, ConfigError> {
        let most = LONGEST_NAME.saturating_sub(LONGEST_ADDITION + prefix_bytes);
        let bytes = self.given.len();
        if most < bytes {
            let name = self.text();
            return Err(ConfigError::SemaphoreName { name, bytes, most });
        }
        Name::new(&self.given)?;
        let (permits, most) = (self.permits, MOST_PERMITS);
        if permits == 0 || most < permits {
            let name = self.text();
            return Err(ConfigError::Permits {
                name,
                permits,
                most,
            });
        }
        let name = |permit| [&self.base, format!(":{permit}").as_bytes()].concat();
        Ok((0..permits).map(name))
    }

    /// Returns the name for people to read.
    fn text(&self) -> String {
        match Name::new(&self.given) {
            Ok(name) => name.to_string(),
            Err(_) => String::from_utf8_lossy(&self.given).into_owned(),
        }
    }

    /// Returns what is held by others if no permit is free.
    pub(super) fn title(&self) -> String {
        match self.permits {
            1 => format!("the only permit of {:?}", self.text()),
            many => format!("all {many} permits of {:?}", self.text()),
        }
    }

    /// Names the semaphore in the error of an acquisition that did not request a permit, because the owner has another one.
    pub(super) fn tell(&self, mut error: AcquireError) -> AcquireError {
        if let AcquireError::Contended { names, .. } = &mut error {
            *names = self.title();
        }
        error
    }
}

/// Whether a name contains a hash tag, as Redis reads it: the bytes between the first `{` and the next `}`, if there are any.
fn has_tag(name: &[u8]) -> bool {
    let mut parts = name.splitn(2, |byte| *byte == b'{');
    let behind = parts.nth(1).unwrap_or_default();
    behind.iter().position(|byte| *byte == b'}') > Some(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn base(name: &str) -> String {
        String::from_utf8(PermitNames::new(name, 1).base).unwrap()
    }

    #[test]
    fn permits_have_one_hash_tag() {
        for (name, expected) in [
            ("printers", "{printers}:permit"),
            ("{eu}/printers", "{eu}/printers:permit"),
            ("printers/{eu}", "printers/{eu}:permit"),
            ("{printers}", "{{printers}}:permit"),
            ("{a}{b}", "{{a}{b}}:permit"),
            ("a{b", "{a{b}:permit"),
            ("a}", "{a}}:permit"),
            ("{}a", "{{}a}:permit"),
            ("a{}{b}", "{a{}{b}}:permit"),
        ] {
            assert_eq!(base(name), expected);
            assert!(has_tag(expected.as_bytes()), "{expected}");
        }
    }

    /// All names of up to six characters of an alphabet of those that matter.
    #[test]
    fn no_two_semaphores_have_the_same_permits() {
        let mut names = vec![String::new()];
        let mut bases = BTreeSet::new();
        let mut longest = 0;
        while longest < 6 {
            let longer = names.iter().flat_map(|name| {
                let with = |end: char| format!("{name}{end}");
                ['{', '}', 'a', ':'].map(with)
            });
            names = longer.collect();
            longest += 1;
            for name in &names {
                assert!(bases.insert(base(name)), "{name}");
            }
        }
    }
}
