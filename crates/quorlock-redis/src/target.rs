//! The target of connections: which server, how to reach it, how to log in, and how long to wait.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use quorlock_core::transport::TransportError;
use redis::RedisConnectionInfo;

use crate::address::Address;
use crate::config::RedisConfig;
use crate::connect::{ByteStream, Endpoint};
use crate::credentials::Login;
use crate::error;
use crate::security::Security;
use crate::source::fixed::Fixed;
use crate::source::{Lead, Source, Wrong};
use crate::timer::{self, Instant};

/// What the command connection and the wake-up connection have in common.
pub(crate) struct Target {
    source: Arc<dyn Source>,
    security: Security,
    login: RedisConnectionInfo,
    shown: String,
    config: RedisConfig,
}

impl Target {
    /// Returns the target of one server.
    pub(crate) fn new(address: Address, config: RedisConfig) -> Self {
        let security = config.security(address.scheme);
        let source = Arc::new(Fixed(address.endpoint));
        Target::behind(source, security, address.login, address.shown, config)
    }

    /// Returns the target of the servers that a source names. All of them accept the same login.
    pub(crate) fn behind(
        source: Arc<dyn Source>,
        security: Security,
        login: RedisConnectionInfo,
        shown: String,
        config: RedisConfig,
    ) -> Self {
        Target {
            source,
            security,
            login,
            shown,
            config,
        }
    }

    pub(crate) fn config(&self) -> &RedisConfig {
        &self.config
    }

    /// Whether the bytes cross a network unencrypted.
    pub(crate) fn is_for_all_to_read(&self) -> bool {
        matches!(self.security, Security::Plain)
    }

    /// Number of the database.
    pub(crate) fn db(&self) -> i64 {
        self.login.db()
    }

    /// Returns the current login; `None` if there is no password.
    pub(crate) async fn login(&self) -> Result<Option<Login>, TransportError> {
        let own = &self.login;
        let login = match (own.password(), &self.config.credentials) {
            (Some(password), _) => Login::new(password),
            (None, Some(credentials)) => {
                let login = credentials.0.login().await;
                login.map_err(|error| error::no_credentials(&error))?
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(login.or_user(own.username())))
    }

    /// Whether connections log in.
    pub(crate) fn logs_in(&self) -> bool {
        self.login.password().is_some() || self.config.credentials.is_some()
    }

    /// Whether the login may change.
    pub(crate) fn has_changing_credentials(&self) -> bool {
        self.login.password().is_none() && self.config.credentials.is_some()
    }

    /// Completes when the login may differ from this one.
    pub(crate) async fn credentials_changed(&self, used: &Login) {
        match &self.config.credentials {
            Some(credentials) => credentials.0.changed(used).await,
            None => std::future::pending().await,
        }
    }

    /// The address without credentials.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Opens a connection with `open` to the server that the source names. If the server is the wrong one and another
    /// search may do better, it tries again, up to the deadline.
    pub(crate) async fn open<T, F>(
        &self,
        deadline: Instant,
        open: impl Fn(Lead) -> F,
    ) -> Result<T, TransportError>
    where
        F: Future<Output = Result<T, TransportError>>,
    {
        loop {
            let lead = self.source.find().await?;
            let whence = lead.whence.clone();
            let error = match open(lead).await {
                Ok(opened) => return Ok(opened),
                Err(error) => error,
            };
            let again = self.source.was_wrong(&whence, Wrong::Opening(&error));
            let error = whence.told(error);
            let Some(again) = again.map(|pause| timer::now() + pause) else {
                return Err(error);
            };
            // The error of the last search is more useful than "the time was over".
            if deadline <= again {
                return Err(error);
            }
            timer::sleep_until(again).await;
        }
    }

    /// Connects to a server, with encryption if the address asks for it. The caller bounds the time by the deadline.
    pub(crate) async fn stream(
        &self,
        endpoint: &Endpoint,
        deadline: Instant,
    ) -> Result<Box<dyn ByteStream>, TransportError> {
        let network = self.config.network.as_ref();
        self.security.stream(network, endpoint, deadline).await
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}
