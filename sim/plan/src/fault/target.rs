//! The target of a fault of a client: a fixed client, or the client that has a role when the fault begins.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

/// A client, by its number or by its role. Written as `0`, `"holder"` or `"holder of 1"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientTarget {
    /// The client with this number, from 0.
    Client(u16),
    /// The client that holds a name, or leads under it, when the fault begins. If there is no such client, the fault
    /// waits for the next one.
    Holder {
        /// The name, from 0. If `None`, the name that was acquired last.
        name: Option<u16>,
    },
}

impl ClientTarget {
    /// Returns the number of the client, if it is fixed.
    #[must_use]
    pub const fn number(self) -> Option<u16> {
        match self {
            ClientTarget::Client(number) => Some(number),
            ClientTarget::Holder { .. } => None,
        }
    }

    /// Returns a mutable reference to the number of the client, if it is fixed.
    pub fn number_mut(&mut self) -> Option<&mut u16> {
        match self {
            ClientTarget::Client(number) => Some(number),
            ClientTarget::Holder { .. } => None,
        }
    }

    /// Returns the name whose holder is the target, if the target states one.
    pub const fn name(self) -> Option<u16> {
        match self {
            ClientTarget::Client(_) => None,
            ClientTarget::Holder { name } => name,
        }
    }
}

impl From<u16> for ClientTarget {
    fn from(number: u16) -> Self {
        ClientTarget::Client(number)
    }
}

impl fmt::Display for ClientTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientTarget::Client(number) => write!(f, "client {number}"),
            ClientTarget::Holder { name: None } => f.write_str("holder"),
            ClientTarget::Holder { name: Some(name) } => write!(f, "holder of {name}"),
        }
    }
}

/// The error for a text that is not a client.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not a client: write its number, \"holder\", or \"holder of 1\" for the holder of name 1"
)]
pub struct NotAClient(String);

impl FromStr for ClientTarget {
    type Err = NotAClient;

    /// Parses `client 0`, `holder` or `holder of 1`.
    fn from_str(text: &str) -> Result<Self, NotAClient> {
        let wrong = || NotAClient(text.to_owned());
        if text == "holder" {
            return Ok(ClientTarget::Holder { name: None });
        }
        let number = |text: &str| text.parse().map_err(|_| wrong());
        match (
            text.strip_prefix("holder of "),
            text.strip_prefix("client "),
        ) {
            (Some(name), _) => Ok(ClientTarget::Holder {
                name: Some(number(name)?),
            }),
            (None, Some(client)) => Ok(ClientTarget::Client(number(client)?)),
            (None, None) => Err(wrong()),
        }
    }
}

impl Serialize for ClientTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ClientTarget::Client(number) => serializer.serialize_u16(*number),
            ClientTarget::Holder { .. } => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for ClientTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = ClientTarget;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of a client, \"holder\", or \"holder of 1\"")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<ClientTarget, E> {
                let number = u16::try_from(number);
                let number = number.map_err(|_| E::custom("there are at most 60 clients"))?;
                Ok(ClientTarget::Client(number))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<ClientTarget, E> {
                let number = u64::try_from(number);
                self.visit_u64(number.map_err(|_| E::custom("clients are counted from 0"))?)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ClientTarget, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
