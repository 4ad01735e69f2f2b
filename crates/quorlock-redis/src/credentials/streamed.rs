//! What a provider of the `redis` crate says.

use std::fmt;
use std::future::{pending, poll_fn};
use std::io;
use std::sync::Arc;

use super::{Changing, Credentials, LoggingIn, Login};

/// The provider of the `redis` crate that [`StreamedCredentials::from_redis_provider`] takes, in the version that it takes it in.
pub use redis::StreamingCredentialsProvider as RedisCredentialsProvider;

/// Credentials of a provider of the `redis` crate, as there is one for Microsoft Entra ID. The first that its stream has is logged in
/// with, and the others go to the connections that live.
#[derive(Clone)]
pub struct StreamedCredentials {
    provider: Arc<dyn RedisCredentialsProvider>,
}

impl StreamedCredentials {
    /// Takes a provider of the `redis` crate, in the version of [`RedisCredentialsProvider`].
    #[must_use]
    pub fn from_redis_provider(provider: Arc<dyn RedisCredentialsProvider>) -> Self {
        StreamedCredentials { provider }
    }
}

/// What one item of a stream is as a login.
fn login_of(item: redis::RedisResult<redis::BasicAuth>) -> io::Result<Login> {
    let auth = item.map_err(|error| {
        // Its details may be those of the request that failed.
        io::Error::other(format!("the provider failed: {}", error.category()))
    })?;
    let login = Login::new(auth.password());
    Ok(match auth.username() {
        "" => login,
        user => login.user(user),
    })
}

/// Whether they differ, as far as the provider names a user.
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
                // A refresh that failed is followed by another one.
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
