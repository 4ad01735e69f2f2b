//! Credentials that change during the life of a connection.

mod password_file;
#[cfg(feature = "redis-credentials")]
mod streamed;

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;

pub use self::password_file::PasswordFile;
#[cfg(feature = "redis-credentials")]
pub use self::streamed::{RedisCredentialsProvider, StreamedCredentials};

/// A request for the current credentials. Dropping it cancels it.
pub type LoggingIn<'a> = Pin<Box<dyn Future<Output = io::Result<Login>> + Send + 'a>>;

/// A wait for a change of the credentials. Dropping it ends the wait.
pub type Changing<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A source of credentials that change: a token that is renewed every quarter of an hour, or a password that is rotated
/// by hand.
///
/// The source is queried before every login of an address without a password. It is queried once more if the server
/// refuses the login and the credentials have changed since. After the login, each connection waits for a change. Then
/// the command connection sends `AUTH` between its requests, and the wake-up connection is replaced, because a
/// connection with subscriptions accepts no `AUTH`. If the server refuses new credentials, connections stay logged in,
/// and the new credentials are tried again later.
///
/// ```
/// use quorlock_redis::{Changing, Credentials, LoggingIn, Login, RedisConfig};
///
/// /// Gets the login from a vault.
/// struct Vault {
///     changed: tokio::sync::Notify,
/// }
///
/// impl Credentials for Vault {
///     fn login(&self) -> LoggingIn<'_> {
///         Box::pin(async { Ok(Login::new("of the moment").user("jobs")) })
///     }
///
///     fn changed(&self, _: &Login) -> Changing<'_> {
///         Box::pin(self.changed.notified())
///     }
/// }
///
/// let vault = Vault { changed: tokio::sync::Notify::new() };
/// let config = RedisConfig::default().credentials(vault);
/// ```
pub trait Credentials: Send + Sync + 'static {
    /// Returns the current login. The connection attempt bounds the time
    /// ([`RedisConfig::connect_timeout`](crate::RedisConfig::connect_timeout)).
    ///
    /// # Errors
    /// An error that states why there is no login. The text is shown in errors, so it must not contain a secret.
    fn login(&self) -> LoggingIn<'_>;

    /// Completes when [`Credentials::login`] would return something other than `_used`, the login of a connection. It
    /// may complete too often, or never (the default), because a new connection queries the login in any case.
    fn changed(&self, _used: &Login) -> Changing<'_> {
        Box::pin(pending())
    }
}

/// A user and a password. Its `Debug` hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: Option<String>,
    password: String,
}

impl Login {
    /// Returns a login with this password (or token), for the user of the address or the default user.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Login {
            user: None,
            password: password.into(),
        }
    }

    /// Sets the user name.
    #[must_use]
    pub fn user(self, name: impl Into<String>) -> Self {
        Login {
            user: Some(name.into()),
            ..self
        }
    }

    pub(crate) fn or_user(self, name: Option<&str>) -> Self {
        let user = self.user.or_else(|| name.map(String::from));
        Login { user, ..self }
    }

    pub(crate) fn user_name(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Login");
        shown.field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_shows_no_password() {
        let login = Login::new("hunter2").user("bob");
        assert_eq!(format!("{login:?}"), "Login { user: Some(\"bob\"), .. }");
        let other = login.or_user(Some("eve"));
        assert_eq!(other.user_name(), Some("bob"));
        let default = Login::new("hunter2").or_user(Some("eve"));
        assert_eq!(default.user_name(), Some("eve"));
    }
}
