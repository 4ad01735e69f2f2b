//! What listeners listen to.

use quorlock_core::message::{self, Mode};

use super::Channel;
use crate::key;
use crate::subscription::claims::WatchedClaim;

/// What a listener listens to.
#[derive(Clone, Debug)]
pub(crate) enum Topic {
    Channel(Channel),
    /// The loss of a claim.
    Claim(WatchedClaim),
}

impl Topic {
    /// Returns what to listen to on the server.
    pub(crate) fn of(channel: &message::Channel) -> Self {
        let message::Channel::Claim(name, mode, owner) = channel else {
            return key::channel_of(channel).as_slice().into();
        };
        let field = match mode {
            Mode::Write => key::writer(*owner),
            Mode::Plain | Mode::Fair | Mode::Read => owner.to_string(),
        };
        Topic::Claim(WatchedClaim {
            key: name.as_bytes().into(),
            field: field.into_bytes().into(),
        })
    }
}

impl From<&[u8]> for Topic {
    /// Returns the topic of a channel.
    fn from(channel: &[u8]) -> Self {
        Topic::Channel(channel.into())
    }
}
