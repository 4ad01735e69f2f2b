//! What to log in with, where it changes while connections live.

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

/// A question for the credentials of now. Dropping it withdraws it.
pub type LoggingIn<'a> = Pin<Box<dyn Future<Output = io::Result<Login>> + Send + 'a>>;

/// A wait for other credentials. Dropping it ends it.
pub type Changing<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Knows what to log in with, for as long as it is valid: a token that is renewed every quarter of an hour, a password that is
/// rotated by hand.
///
/// It is asked before every login of an address that has no password of its own, and once more when the server has refused what it
/// said and it says something else by then. A connection that is logged in waits for a change: then the command connection sends
/// `AUTH` between the requests that it carries, and the wake-up connection is made anew, because a connection that listens takes no
/// `AUTH`. New credentials that the server refuses end nothing: what is logged in stays so, and they are tried again.
///
/// ```
/// use quorlock_redis::{Changing, Credentials, LoggingIn, Login, RedisConfig};
///
/// /// Asks a vault.
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
    /// What to log in with now. The attempt to connect bounds it in time
    /// ([`RedisConfig::connect_timeout`](crate::RedisConfig::connect_timeout)).
    ///
    /// # Errors
    /// Why there is none. Its text is shown in errors, so it holds no secret.
    fn login(&self) -> LoggingIn<'_>;

    /// Completes when [`Credentials::login`] would say something else than this, which a connection is logged in with. May complete
    /// too often, or never (the default): a connection that is made later asks anyway.
    fn changed(&self, _used: &Login) -> Changing<'_> {
        Box::pin(pending())
    }
}

/// A user and a password. Shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: Option<String>,
    password: String,
}

impl Login {
    /// Logs in with this password (or token), as the user that the address names, or the default user.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Login {
            user: None,
            password: password.into(),
        }
    }

    /// Logs in as this user.
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
