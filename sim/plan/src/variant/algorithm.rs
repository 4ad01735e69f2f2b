//! Lock algorithms that are not of this crate: a program registers them under their names in plans.

use std::sync::{PoisonError, RwLock};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Variant;

/// A lock algorithm that a program has registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Algorithm {
    name: &'static str,
    nodes: AlgorithmNodes,
}

/// The nodes that a lock algorithm uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AlgorithmNodes {
    /// One server.
    Server,
    /// Several servers, in a plan with the lock `redlock`.
    Majority,
    /// The records of one database.
    Database,
    /// The records of one consensus store.
    Consensus,
}

/// The lease in a record, which the laboratory has besides the locks with flaws.
pub const LEASE_RECORD: Algorithm = Algorithm {
    name: "lease-record",
    nodes: AlgorithmNodes::Consensus,
};

/// What plans can name: the algorithms, and the names of all variants for errors.
struct Registered {
    algorithms: &'static [Algorithm],
    names: &'static [&'static str],
}

static REGISTERED: RwLock<Registered> = RwLock::new(Registered {
    algorithms: &[LEASE_RECORD],
    names: Variant::NAMES,
});

/// The error for an algorithm whose name plans cannot use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegisterError {
    /// Another variant of the lock has the name.
    #[error("{0:?} is the name of another variant of the lock: give the algorithm another one")]
    Taken(&'static str),
    /// The name has other characters than the names of variants.
    #[error(
        "{0:?} cannot be the name of a variant of the lock: use lower-case letters, digits and hyphens, such as my-lock"
    )]
    Malformed(&'static str),
}

impl Algorithm {
    /// Registers an algorithm, so that plans can name it. Registering it again changes nothing.
    ///
    /// # Errors
    /// [`RegisterError`] if the name is malformed, or if another variant has it.
    pub fn register(name: &'static str, nodes: AlgorithmNodes) -> Result<Self, RegisterError> {
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(is_fit) {
            return Err(RegisterError::Malformed(name));
        }
        let asked = Algorithm { name, nodes };
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        match registered
            .algorithms
            .iter()
            .find(|known| known.name == name)
        {
            Some(known) if *known == asked => return Ok(asked),
            None if !registered.names.contains(&name) => {}
            _ => return Err(RegisterError::Taken(name)),
        }
        // They are needed until the program ends: serde's errors list names that live that long.
        let names = [registered.names, &[name]].concat();
        *registered = Registered {
            algorithms: [registered.algorithms, &[asked]].concat().leak(),
            names: names.leak(),
        };
        Ok(asked)
    }

    /// Returns the name of the algorithm in plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the nodes that the algorithm uses.
    #[must_use]
    pub const fn nodes(self) -> AlgorithmNodes {
        self.nodes
    }

    /// Returns the registered algorithm with a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        let mut algorithms = registered.algorithms.iter().copied();
        algorithms.find(|known| known.name == name)
    }
}

impl AlgorithmNodes {
    /// Returns whether these are records of a store.
    #[must_use]
    pub const fn is_store(self) -> bool {
        matches!(self, AlgorithmNodes::Database | AlgorithmNodes::Consensus)
    }
}

/// Returns the names of all variants.
pub(super) fn names() -> &'static [&'static str] {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.names
}

impl Serialize for Variant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Variant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = name.parse();
        known.map_err(|_| D::Error::unknown_variant(&name, names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    #[test]
    fn a_registered_algorithm_is_known_by_its_name_in_a_plan() {
        let text = "variant = \"of-a-test\"";
        let before = toml::from_str::<Plan>(text).unwrap_err().to_string();
        assert!(
            before.contains("unknown variant `of-a-test`, expected one of `product`"),
            "{before}"
        );
        let registered = Algorithm::register("of-a-test", AlgorithmNodes::Server).unwrap();
        assert_eq!(
            Algorithm::register("of-a-test", AlgorithmNodes::Server),
            Ok(registered)
        );
        let plan: Plan = toml::from_str(text).unwrap();
        assert_eq!(plan.variant, Variant::Algorithm(registered));
        assert_eq!(
            toml::to_string(&plan)
                .unwrap()
                .lines()
                .find(|line| line.starts_with("variant")),
            Some(text)
        );
    }

    #[test]
    fn a_name_that_is_taken_or_malformed_is_refused() {
        let register = |name| Algorithm::register(name, AlgorithmNodes::Server);
        assert_eq!(
            register("published"),
            Err(RegisterError::Taken("published"))
        );
        assert_eq!(
            register("lease-record"),
            Err(RegisterError::Taken("lease-record"))
        );
        assert_eq!(
            register("My lock"),
            Err(RegisterError::Malformed("My lock"))
        );
        assert_eq!(register(""), Err(RegisterError::Malformed("")));
    }
}
