//! The session of a store with its ensemble.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::transport::TransportError;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::error::Failure;
use super::znode::Folder;
use crate::cluster::Login;
use crate::database::{Phase, process_of};
use crate::links::{self, Links};
use crate::numbered;
use crate::store::Stamp;
use crate::sync::atomic::{AtomicBool, Ordering};

/// How long the ensemble keeps a session without a connection. Nothing of a lock depends on it.
const SESSION: Duration = Duration::from_secs(10);

/// A member that is silent for this long is left for another one.
const SILENT: Duration = Duration::from_secs(3);

/// The znode with the number of the process. It is the same for all prefixes of an ensemble, so that a majority notices when two of
/// its addresses lead to one ensemble.
const ID: &str = "/quorlock.id";

/// The one session of a store, which carries all calls at once.
pub(super) type Link = Links<Session, 1>;

/// How a session is made.
pub(super) struct Dial {
    /// The members, separated by commas.
    pub(super) members: String,
    pub(super) login: Option<Login>,
    pub(super) folder: Folder,
}

/// A session whose folder is there.
pub(super) struct Session {
    pub(super) client: Client,
    stamp: Stamp,
    has_ended: AtomicBool,
}

impl links::Session for Session {
    type Target = Arc<Dial>;

    async fn open(dial: Arc<Dial>) -> Result<Session, TransportError> {
        let opened = dial.open().await;
        opened.map_err(|failure| failure.into_error(Phase::Connect))
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed) || self.client.state().is_terminated()
    }
}

impl Session {
    /// Lets the next call make another session.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

impl Dial {
    async fn open(&self) -> Result<Session, Failure> {
        let connector = Client::connector()
            .with_session_timeout(SESSION)
            .with_connection_timeout(SILENT)
            .with_fail_eagerly();
        let connector = match &self.login {
            Some(Login { user, password }) => {
                connector.with_auth("digest", format!("{user}:{password}").as_bytes())
            }
            None => connector,
        };
        let client = connector.connect(&self.members).await?;
        let options = CreateMode::Persistent.with_acls(self.folder.acls());
        client.mkdir(&self.folder.path, &options).await?;
        // The server takes any user, and refuses the znodes of another one.
        client.get_data(&self.folder.path).await?;
        Ok(Session {
            stamp: Stamp {
                now: None,
                process: process_of(id(&client).await?, 0),
            },
            client,
            has_ended: AtomicBool::new(false),
        })
    }
}

/// Returns the number of the ensemble. The first client draws it.
async fn id(client: &Client) -> Result<u64, Failure> {
    let drawn = numbered::digits(rand::random());
    // Every client of the ensemble may read it, whatever user made it.
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    match client.create(ID, drawn.as_bytes(), &options).await {
        Ok(_) | Err(Error::NodeExists) => {}
        Err(error) => return Err(error.into()),
    }
    client.sync(ID).await?;
    let (data, _) = client.get_data(ID).await?;
    numbered::number(&data).ok_or_else(|| Failure::Strange(ID.to_owned()))
}

/// Makes a call. It is made again where another session may do better, and it was not executed.
pub(super) async fn call<T, F>(
    link: &Link,
    phase: Phase,
    send: impl Fn(Client) -> F,
) -> Result<(T, Stamp), TransportError>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut is_first = true;
    loop {
        let session = link.session().await?;
        let failure = match send(session.client.clone()).await {
            Ok(done) => return Ok((done, session.stamp)),
            Err(failure) => failure,
        };
        if failure.ends_session() {
            session.end();
        }
        let may_repeat = match phase {
            Phase::Read => failure.may_pass(),
            Phase::Connect | Phase::Write => failure.may_move(),
        };
        if !std::mem::take(&mut is_first) || !may_repeat {
            return Err(failure.into_error(phase));
        }
    }
}
