//! What a client knows of its database.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ::mongodb::bson::{Document, doc};
use ::mongodb::options::{
    Acknowledgment, ClientOptions, ConnectionString, ReadConcern, ReadPreference,
    SelectionCriteria, WriteConcern,
};
use ::mongodb::{Client, Collection};
use quorlock_core::transport::TransportError;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use super::error::Failure;
use super::server;
use crate::database::{Phase, process_of};
use crate::links::{self, Links};
use crate::store::Stamp;

/// How long a client relies on what it has read about its database.
const KEPT: Duration = Duration::from_secs(60);

/// How long a primary may take to be found, or to take a connection.
const CONNECTED: Duration = Duration::from_secs(3);

/// How long a server may take for one call. After that, it is taken for one that has vanished: the driver has no time-out.
const LONGEST: Duration = Duration::from_secs(10);

/// The collection with the records.
const RECORDS: &str = "quorlock";

/// The document with the number of the process. No record has this id, as it has a dot.
const ID: &str = "quorlock.id";

pub(super) type Link = Links<Session, 1>;

/// A database.
pub(super) struct Database {
    connection: ConnectionString,
    name: String,
    client: OnceCell<Client>,
}

/// What is known of a database for some time.
pub(super) struct Session {
    pub(super) stamp: Stamp,
    since: Instant,
}

impl links::Session for Session {
    type Target = Arc<Database>;

    #[expect(clippy::disallowed_methods, reason = "decides no claim")]
    async fn open(database: Arc<Database>) -> Result<Session, TransportError> {
        let since = Instant::now();
        let id = in_time(database.open()).await;
        let id = id.map_err(|failure| failure.into_error(Phase::Connect))?;
        let stamp = Stamp {
            now: None,
            process: process_of(id, 0),
        };
        Ok(Session { stamp, since })
    }

    fn has_ended(&self) -> bool {
        KEPT <= self.since.elapsed()
    }
}

impl Database {
    pub(super) fn new(connection: ConnectionString, name: String) -> Self {
        Database {
            connection,
            name,
            client: OnceCell::new(),
        }
    }

    async fn client(&self) -> Result<&Client, Failure> {
        let client = self.client.get_or_try_init(async || {
            let mut options = ClientOptions::parse(self.connection.clone()).await?;
            options.connect_timeout.get_or_insert(CONNECTED);
            options.server_selection_timeout = Some(CONNECTED);
            // A deposed primary that does not know it yet may show an old record. That grants nothing: each grant is a write, and the write that
            // names the old version finds another one, or no majority.
            let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
            options.selection_criteria = Some(primary);
            options.read_concern = Some(ReadConcern::majority());
            let on_disk = WriteConcern::builder()
                .w(Acknowledgment::Majority)
                .journal(true);
            options.write_concern = Some(on_disk.build());
            // A write without a reply is looked for, and sent again only then.
            options.retry_writes = Some(false);
            Client::with_options(options)
        });
        Ok(client.await?)
    }

    pub(super) async fn records(&self) -> Result<Collection<Document>, Failure> {
        let client = self.client().await?;
        Ok(client.database(&self.name).collection(RECORDS))
    }

    pub(super) async fn version(&self) -> Result<String, Failure> {
        let build = self.said(doc! { "buildInfo": 1 }).await?;
        Ok(server::name(&build))
    }

    /// Returns the number of the process, if locks can be on the server.
    async fn open(&self) -> Result<u64, Failure> {
        // One after another: of several calls that make a connection, one is told why that fails.
        let role = self.said(doc! { "isMaster": 1 }).await?;
        let build = self.said(doc! { "buildInfo": 1 }).await?;
        server::check(&role, &build)?;
        match self.id().await? {
            Some(id) => Ok(id),
            None => self.draw().await,
        }
    }

    /// Returns what a server answers to a command.
    async fn said(&self, command: Document) -> Result<Document, Failure> {
        let client = self.client().await?;
        Ok(client.database(&self.name).run_command(command).await?)
    }

    /// Returns the number of the process, if it is drawn.
    async fn id(&self) -> Result<Option<u64>, Failure> {
        let records = self.records().await?;
        let found = records.find_one(doc! { "_id": ID }).await?;
        let number = |found: Document| match found.get_i64("number") {
            Ok(number) => Ok(number.cast_unsigned()),
            Err(_) => Err(Failure::Strange(ID.to_owned())),
        };
        found.map(number).transpose()
    }

    /// Draws the number of the process, unless another client has been faster.
    async fn draw(&self) -> Result<u64, Failure> {
        let records = self.records().await?;
        let drawn = records.insert_one(doc! { "_id": ID, "number": rand::random::<i64>() });
        match drawn.await.map_err(Failure::from) {
            Ok(_) | Err(Failure::Conflict) => {}
            Err(failure) => return Err(failure),
        }
        let id = self.id().await?;
        id.ok_or_else(|| Failure::Strange(ID.to_owned()))
    }
}

/// Waits for a call, but not for ever.
#[expect(
    clippy::disallowed_methods,
    reason = "the driver has no time-outs, and no caller waits as long as that"
)]
pub(super) async fn in_time<T>(
    call: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(LONGEST, call).await.unwrap_or(Err(Failure::Late))
}
