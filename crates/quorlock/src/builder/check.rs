//! Checks settings against each other.

use std::time::Duration;

use quorlock_core::acquisition::RetryPolicy;
use quorlock_core::message::Retention;
use quorlock_core::name::Name;

use super::LocksBuilder;
use crate::config::{Config, lease_of};
use crate::error::{ConfigError, LeaseSource};

impl LocksBuilder {
    /// Checks the settings against each other and returns them.
    pub(crate) fn check(&self) -> Result<Config, ConfigError> {
        self.check_spans()?;
        self.check_retention(self.clock_margin.unwrap_or(Duration::ZERO))?;
        if !self.key_prefix.is_empty() {
            Name::new(&self.key_prefix).map_err(ConfigError::KeyPrefix)?;
        }
        self.check_namespace()?;
        self.check_label()?;
        self.check_retry()?;
        let mut config = Config {
            watchdog_lease: lease_of(LeaseSource::WatchdogLease, self.watchdog_lease)?,
            longest_lease: self.longest(),
            max_hold: self.max_hold,
            retry: self.retry,
            retention: self
                .token_retention
                .map_or(Retention::Forever, Retention::of),
            namespace: self.whole_namespace().into(),
            key_prefix: self.key_prefix.clone(),
            member_timeout: self.member_timeout,
            names_holders: self.label.is_some(),
            watches_claims: self.watches_claims,
            identity: self.identity,
            #[cfg(feature = "metrics")]
            name_labels: self.name_labels.clone(),
        };
        config.watchdog_lease = config.lease_of(LeaseSource::WatchdogLease, self.watchdog_lease)?;
        Ok(config)
    }

    fn check_label(&self) -> Result<(), ConfigError> {
        let Some(label) = &self.label else {
            return Ok(());
        };
        let is_printable = label.bytes().all(|byte| byte.is_ascii_graphic());
        match is_printable && (1..=100).contains(&label.len()) {
            true => Ok(()),
            false => Err(ConfigError::Label),
        }
    }

    fn check_namespace(&self) -> Result<(), ConfigError> {
        let namespace = self.whole_namespace();
        if namespace.iter().any(|byte| b"{}".contains(byte)) {
            return Err(ConfigError::NamespaceBraces);
        }
        if namespace.is_empty() {
            return Ok(());
        }
        let name = Name::within(namespace, &self.key_prefix);
        name.map(drop).map_err(ConfigError::Namespace)
    }

    /// Checks the spans that are sent to nodes, which cannot store longer ones.
    fn check_spans(&self) -> Result<(), ConfigError> {
        let told = [
            ("watchdog_lease", Some(self.watchdog_lease)),
            ("longest_lease", Some(self.longest())),
            ("clock_margin", self.clock_margin),
            ("token_retention", self.token_retention),
        ];
        let most = Self::LONGEST_SPAN;
        let told = told.into_iter();
        let mut spans = told.filter_map(|(field, span)| Some((field, span?)));
        match spans.find(|(_, span)| most < *span) {
            None => Ok(()),
            Some((field, span)) => Err(ConfigError::SpanTooLong { field, span, most }),
        }
    }

    /// Checks that a token counter outlives the claims.
    pub(super) fn check_retention(&self, margin: Duration) -> Result<(), ConfigError> {
        match self.token_retention {
            // A counter that expires while A's claim lives is restarted from a wall clock, and B, the next owner,
            // may get a smaller token than A.
            Some(retention) if retention <= self.longest().saturating_add(margin) => {
                Err(ConfigError::TokenRetention {
                    retention,
                    longest: self.longest(),
                    margin,
                })
            }
            _ => Ok(()),
        }
    }

    fn check_retry(&self) -> Result<(), ConfigError> {
        let RetryPolicy {
            backoff,
            backoff_cap,
            without_quorum,
            poll_cap,
            ..
        } = self.retry;
        let zeros = [
            (
                "member_timeout",
                self.member_timeout == Some(Duration::ZERO),
            ),
            ("retry.backoff", backoff.is_zero()),
            ("retry.without_quorum", without_quorum.is_zero()),
            ("retry.poll_cap", poll_cap.is_zero()),
        ];
        if let Some((field, _)) = zeros.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(ConfigError::Zero { field });
        }
        if backoff_cap < backoff {
            return Err(ConfigError::Backoff {
                backoff,
                cap: backoff_cap,
            });
        }
        Ok(())
    }
}
