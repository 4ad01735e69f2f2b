//! Spans of `tracing`: one per acquisition, and one per guard. Without the feature they are empty.

use std::fmt::Display;

use quorlock_core::fencing::Token;
use quorlock_core::owner::OwnerId;

use crate::error::{AcquireError, ReleaseError};

/// The span of an acquisition or of a guard. It ends when it is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Span(#[cfg(feature = "tracing")] tracing::Span);

/// Opens the span of an acquisition.
pub(crate) fn acquire(names: &dyn Display) -> Span {
    Span(
        #[cfg(feature = "tracing")]
        tracing::debug_span!(
            target: "quorlock",
            "acquire",
            %names,
            owner = tracing::field::Empty,
            token = tracing::field::Empty,
            outcome = tracing::field::Empty,
        ),
    )
}

/// Opens the span of a guard.
pub(crate) fn hold(names: &dyn Display, owner: OwnerId, token: Token) -> Span {
    Span(
        #[cfg(feature = "tracing")]
        tracing::debug_span!(
            target: "quorlock",
            "hold",
            %names,
            %owner,
            %token,
            outcome = tracing::field::Empty,
        ),
    )
}

impl Span {
    /// Runs `act` inside the span.
    pub(crate) fn within<T>(&self, act: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        let _entered = self.0.enter();
        act()
    }

    /// Records how an acquisition ended.
    pub(crate) fn acquired(&self, result: Result<(OwnerId, Token), &AcquireError>) {
        #[cfg(feature = "tracing")]
        {
            self.0.record("outcome", outcome(result));
            if let Ok((owner, token)) = result {
                self.0.record("owner", tracing::field::display(owner));
                self.0.record("token", tracing::field::display(token));
            }
        }
    }

    /// Records how a guard was released.
    pub(crate) fn released(&self, result: &Result<(), ReleaseError>) {
        self.ended(match result {
            Ok(()) => "released",
            Err(ReleaseError::NotHeld { .. }) => "lost",
            Err(_) => "unconfirmed",
        });
    }

    /// Records how a guard ended.
    pub(crate) fn ended(&self, outcome: &'static str) {
        #[cfg(feature = "tracing")]
        self.0.record("outcome", outcome);
    }
}

/// The outcome of an acquisition as a label value.
#[cfg(any(feature = "metrics", feature = "tracing"))]
pub(super) fn outcome(result: Result<(OwnerId, Token), &AcquireError>) -> &'static str {
    match result {
        Ok(_) => "acquired",
        Err(AcquireError::Contended { .. }) => "contended",
        Err(AcquireError::NoQuorum { .. }) => "no_quorum",
        Err(AcquireError::TooSlow { .. }) => "too_slow",
        Err(AcquireError::Closed) => "closed",
        Err(_) => "refused",
    }
}
