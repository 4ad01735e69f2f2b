//! Credentials from a provider of the `redis` crate.

use std::fmt;
use std::future::{pending, poll_fn};
use std::io;
use std::sync::Arc;

use super::{Changing, Credentials, LoggingIn, Login};

/// The provider of the `redis` crate that [`StreamedCredentials::from_redis_provider`] takes. A new major version of that
/// crate changes this type.
pub use redis::StreamingCredentialsProvider as RedisCredentialsProvider;

/// Credentials of a provider of the `redis` crate, for example for Microsoft Entra ID. A new connection uses the first
/// item of the provider's stream; later items go to live connections.
#[derive(Clone)]
pub struct StreamedCredentials {
    provider: Arc<dyn RedisCredentialsProvider>,
}

impl StreamedCredentials {
    /// Uses a provider of the `redis` crate, in the version of [`RedisCredentialsProvider`].
    #[must_use]
    pub fn from_redis_provider(provider: Arc<dyn RedisCredentialsProvider>) -> Self {
        StreamedCredentials { provider }
    }
}

/// Converts an item of the stream to a login.
fn login_of(item: redis::RedisResult<redis::BasicAuth>) -> io::Result<Login> {
    let auth = item.map_err(|error| {
        // The details may come from the failed request, and contain a secret.
        io::Error::other(format!("the provider failed: {}", error.category()))
    })?;
    let login = Login::new(auth.password());
    Ok(match auth.username() {
        "" => login,
        user => login.user(user),
    })
}

/// Whether the logins differ. A user counts only if the provider names one.
fn differs(next: &Login, used: &Login) -> bool {
    let user = next.user_name();
    user.is_some_and(|user| used.user_name() != Some(user)) || next.password() != used.password()
}

impl Credentials for StreamedCredentials {
    fn login(&self) -> LoggingIn<'_> {
        Box::pin(async {
            let mut stream = self.provider.subscribe();
            let first = poll_fn(|cx| stream.as_mut().poll_next(cx)).await;
            first.map_or_else(|| Err(io::Error::other("the provider has ended")), login_of)
        })
    }

    fn changed(&self, used: &Login) -> Changing<'_> {
        let used = used.clone();
        Box::pin(async move {
            let mut stream = self.provider.subscribe();
            while let Some(item) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
                // A failed refresh is followed by another one, so it is ignored.
                if login_of(item).is_ok_and(|next| differs(&next, &used)) {
                    return;
                }
            }
            pending().await
        })
    }
}

impl fmt::Debug for StreamedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedCredentials")
            .finish_non_exhaustive()
    }
}
