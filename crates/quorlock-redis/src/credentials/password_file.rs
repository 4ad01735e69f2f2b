//! A password in a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Changing, Credentials, LoggingIn, Login};
use crate::timer::{self, LONGEST_SPAN};

/// Default interval between checks of the file.
const LOOK: Duration = Duration::from_secs(10);

/// Shortest interval between checks of the file.
const LEAST_LOOK: Duration = Duration::from_millis(10);

/// A password in the first line of a file that is replaced when the password changes.
///
/// The file is read before every login, and checked every ten seconds: connections log in again with a changed password.
/// To rotate without a gap, add the new password for the user (`ACL SETUSER user >new`), replace the file (write another
/// file and rename it), and remove the old password (`ACL SETUSER user <old`) when all clients have checked the file.
///
/// ```
/// use quorlock_redis::{PasswordFile, RedisConfig};
///
/// let config = RedisConfig::default().credentials(PasswordFile::new("/run/secrets/redis"));
/// ```
#[derive(Clone)]
pub struct PasswordFile {
    path: Arc<Path>,
    user: Option<String>,
    look_every: Duration,
}

impl PasswordFile {
    /// Uses the password in this file, for the user of the address.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        PasswordFile {
            path: Arc::from(path.into()),
            user: None,
            look_every: LOOK,
        }
    }

    /// Sets the user name.
    #[must_use]
    pub fn user(self, name: impl Into<String>) -> Self {
        PasswordFile {
            user: Some(name.into()),
            ..self
        }
    }

    /// Sets how often a live connection checks whether the password has changed. Default: 10 s; at least 10 ms.
    #[must_use]
    pub fn look_every(self, interval: Duration) -> Self {
        PasswordFile {
            look_every: interval.clamp(LEAST_LOOK, LONGEST_SPAN),
            ..self
        }
    }

    async fn read(&self) -> io::Result<Login> {
        let path = Arc::clone(&self.path);
        let read = timer::blocking(move || first_line(&path)).await;
        let password =
            read.unwrap_or_else(|| Err(io::Error::other("the runtime was shut down")))?;
        let login = Login::new(password);
        Ok(login.or_user(self.user.as_deref()))
    }
}

/// Reads the first line. The error names the file, but quotes none of its content.
fn first_line(path: &Path) -> io::Result<String> {
    let shown = path.display();
    let text = std::fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{shown}: {error}")))?;
    let text = String::from_utf8(text).ok();
    match text.as_deref().and_then(|text| text.lines().next()) {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{shown}: the first line must be the password, in UTF-8"),
        )),
    }
}

impl Credentials for PasswordFile {
    fn login(&self) -> LoggingIn<'_> {
        Box::pin(self.read())
    }

    fn changed(&self, used: &Login) -> Changing<'_> {
        let used = used.password().to_owned();
        Box::pin(async move {
            loop {
                timer::sleep_until(timer::now() + self.look_every).await;
                // A file that cannot be read is not a change.
                if self
                    .read()
                    .await
                    .is_ok_and(|login| login.password() != used)
                {
                    return;
                }
            }
        })
    }
}

impl fmt::Debug for PasswordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordFile")
            .field("path", &self.path)
            .field("user", &self.user)
            .field("look_every", &self.look_every)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_line_is_the_password_and_an_error_names_the_file_alone() {
        let path = std::env::temp_dir().join(format!("quorlock-password-{}", std::process::id()));
        let file = PasswordFile::new(&path).user("bob");
        for (content, password) in [
            (&b"hunter2\nsecond\n"[..], Some("hunter2")),
            (b"hunter2", Some("hunter2")),
            (b"hunter2\r\n", Some("hunter2")),
            (b"", None),
            (b"\nhunter2", None),
            (b"hunter2\xff", None),
        ] {
            std::fs::write(&path, content).unwrap();
            let read = file.login().await;
            match (&read, password) {
                (Ok(login), Some(password)) => assert_eq!(login.password(), password),
                (Err(_), None) => {}
                _ => panic!("{read:?}"),
            }
            assert!(!format!("{read:?} {file:?}").contains("hunter"), "{read:?}");
        }
        std::fs::remove_file(&path).unwrap();
        let error = file.login().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("quorlock-password"), "{error}");
    }
}
