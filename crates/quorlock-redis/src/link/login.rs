//! Logs in, and logs in again when the credentials change.

use std::sync::Arc;

use quorlock_core::transport::TransportError;
use redis::{Cmd, ServerError, Value};

use super::Connection;
use super::wire::Wire;
use crate::credentials::Login;
use crate::error;
use crate::sync::task::AbortHandle;
use crate::target::Target;
use crate::timer;

/// Logs in and selects the database. Returns the login, if there is a password.
pub(super) async fn log_in(wire: &Wire, target: &Target) -> Result<Option<Login>, TransportError> {
    let mut login = target.login().await?;
    if let Some(first) = &login
        && let Err(refused) = authenticate(wire, target, first).await
    {
        // The password may have been rotated between the read and the login: the client used the old one, and the
        // server already had the new one.
        let next = target.login().await?;
        match &next {
            Some(next) if next != first => authenticate(wire, target, next).await?,
            _ => return Err(refused),
        }
        login = next;
    }
    if target.db() != 0 {
        let mut select = redis::cmd("SELECT");
        select.arg(target.db());
        if let Value::ServerError(refusal) = wire.ask(target, &select).await? {
            return Err(error::no_such_database(&refusal));
        }
    }
    if let Some(name) = &target.config().client_name {
        let mut set_name = redis::cmd("CLIENT");
        set_name.arg("SETNAME").arg(name);
        // A connection without a name is as good.
        wire.ask(target, &set_name).await?;
    }
    Ok(login)
}

async fn authenticate(wire: &Wire, target: &Target, login: &Login) -> Result<(), TransportError> {
    let cmd = auth(login.user_name(), login.password());
    let mut answer = wire.ask(target, &cmd).await?;
    if let Value::ServerError(refusal) = &answer
        && knows_no_users(refusal)
    {
        let cmd = auth(None, login.password());
        answer = wire.ask(target, &cmd).await?;
    }
    match answer {
        Value::ServerError(refusal) => Err(error::not_logged_in(&refusal, login.password())),
        _ => Ok(()),
    }
}

fn auth(user: Option<&str>, password: &str) -> Cmd {
    let mut cmd = redis::cmd("AUTH");
    if let Some(user) = user {
        cmd.arg(user);
    }
    cmd.arg(password);
    cmd
}

/// Before Redis 6, `AUTH` took only a password.
fn knows_no_users(refusal: &ServerError) -> bool {
    let detail = refusal.details().unwrap_or_default();
    detail.contains("wrong number of arguments for 'auth' command")
}

/// How to renew the login of a connection.
pub(super) enum Way {
    /// By an `AUTH` between its requests.
    Again(Wire),
    /// By ending the connection, so that another one is made: a connection with subscriptions accepts no
    /// `AUTH`.
    Anew(AbortHandle),
}

/// Follows changes of the credentials. The end of the connection aborts this task.
///
/// A refused login does not end the connection. The file may have the new password a second before the server
/// does: if the connection ended in between, no other one could be made.
pub(super) async fn follow(target: Arc<Target>, mut used: Login, way: Way) {
    loop {
        target.credentials_changed(&used).await;
        let mut failures = 0;
        loop {
            match target.login().await {
                Ok(Some(next)) if next == used => break,
                Ok(Some(next)) => {
                    if accepted(&target, &next, &way).await {
                        used = next;
                        break;
                    }
                }
                Ok(None) => return,
                Err(_) => {}
            }
            failures += 1;
            timer::sleep_until(timer::now() + timer::delay(failures)).await;
        }
        // A source may report changes at any rate, so this pause bounds the number of logins.
        timer::sleep_until(timer::now() + timer::delay(1)).await;
    }
}

async fn accepted(target: &Arc<Target>, login: &Login, way: &Way) -> bool {
    match way {
        Way::Again(wire) => authenticate(wire, target, login).await.is_ok(),
        Way::Anew(driver) => {
            let deadline = timer::now() + target.config().connect_timeout;
            let trial = timer::by(deadline, Connection::trial(target, deadline)).await;
            let is_accepted = trial.is_some_and(|connected| connected.is_ok());
            if is_accepted {
                driver.abort();
            }
            is_accepted
        }
    }
}
