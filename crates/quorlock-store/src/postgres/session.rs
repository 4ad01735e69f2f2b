//! Connections to the server, and the statements that they have prepared.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::try_join5;
use futures_util::stream::{self, Stream, StreamExt};
use quorlock_core::transport::TransportError;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Error, Socket, Statement};

use super::error::{self, failed};
use crate::database::{Phase, accepted, read_only};
use crate::links;

/// The messages of a connection. It makes progress only while they are polled.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Result<AsyncMessage, Error>> + Send>>;

type Dialled = Pin<Box<dyn Future<Output = Result<(Client, Messages), Error>> + Send>>;

/// Makes a connection.
pub(super) type Dial = dyn Fn() -> Dialled + Send + Sync;

/// The server's clock, and its timeline. A server in recovery, which takes no writes, has none.
macro_rules! stamp {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
         ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint"
    };
}

const READ: &str = concat!(
    "SELECT q.version, q.record, ",
    stamp!(),
    " FROM (SELECT 1) AS one LEFT JOIN quorlock AS q ON q.key = $1"
);

/// What is told to listeners is sent when the write is committed, and only if one listens ([`quiet`]): the server commits
/// transactions with a message one after another, each after the disk has the one before.
///
/// [`quiet`]: super::quiet
const TOLD: &str = ", CASE WHEN $4::text IS NULL THEN NULL \
    WHEN pg_advisory_xact_lock_shared(577215666, $5)::text = '' THEN \
    CASE WHEN pg_try_advisory_lock(577215665, $5) THEN pg_advisory_unlock(577215665, $5)::text \
    ELSE pg_notify('quorlock', $4)::text END END FROM written";

const INSERT: &str = concat!(
    "WITH written AS (INSERT INTO quorlock (key, version, record, useful_until) \
     VALUES ($1, $6, $2, $3) ON CONFLICT (key) DO NOTHING RETURNING version) \
     SELECT version, ",
    stamp!()
);

const UPDATE: &str = concat!(
    "WITH written AS (UPDATE quorlock SET version = $6, record = $2, useful_until = $3 \
     WHERE key = $1 AND version = $7 RETURNING version) SELECT version, ",
    stamp!()
);

const SWEEP: &str = "DELETE FROM quorlock WHERE key IN (SELECT key FROM quorlock \
    WHERE useful_until < (extract(epoch FROM clock_timestamp()) * 1000)::bigint LIMIT 1000 FOR UPDATE SKIP LOCKED) \
    AND useful_until < (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Makes a commit durable before it is acknowledged. A stricter level of the server stays.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'local', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

const SYSTEM: &str = "SELECT system_identifier, pg_is_in_recovery(), current_setting('transaction_read_only') = 'on' \
    FROM pg_control_system()";

/// The keys after one, in the order of their bytes.
const KEYS: &str = "SELECT key FROM quorlock WHERE key > $1 ORDER BY key LIMIT 1000";

/// A connection with its statements.
pub(super) struct Session {
    pub(super) client: Client,
    /// The identifier of the server, which it has from its first start on.
    pub(super) system: u64,
    pub(super) read: Statement,
    pub(super) insert: Statement,
    pub(super) update: Statement,
    pub(super) sweep: Statement,
    pub(super) keys: Statement,
}

impl links::Session for Session {
    type Target = Arc<Dial>;

    async fn open(dial: Arc<Dial>) -> Result<Session, TransportError> {
        let failed = |error: Error| failed(&error, Phase::Connect);
        let client = connect(&*dial).await?;
        client.batch_execute(DURABLE).await.map_err(failed)?;
        let row = client.query_one(SYSTEM, &[]).await.map_err(failed)?;
        let system: i64 = row.try_get(0).map_err(failed)?;
        if row.try_get(1).map_err(failed)? {
            return Err(read_only(error::REPLICA));
        }
        if row.try_get(2).map_err(failed)? {
            return Err(read_only(error::READ_ONLY));
        }
        // One round trip for all: the server answers them in order.
        let (insert, update) = (format!("{INSERT}{TOLD}"), format!("{UPDATE}{TOLD}"));
        let prepared = try_join5(
            client.prepare(READ),
            client.prepare(&insert),
            client.prepare(&update),
            client.prepare(SWEEP),
            client.prepare(KEYS),
        );
        let (read, insert, update, sweep, keys) = prepared.await.map_err(failed)?;
        Ok(Session {
            system: system.cast_unsigned(),
            read,
            insert,
            update,
            sweep,
            keys,
            client,
        })
    }

    fn has_ended(&self) -> bool {
        self.client.is_closed()
    }
}

/// Connects, and drives the connection until it ends.
async fn connect(dial: &Dial) -> Result<Client, TransportError> {
    let dialled = async { dial().await.map_err(|error| failed(&error, Phase::Connect)) };
    let (client, mut messages) = accepted("PostgreSQL", dialled).await?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the driver of a connection needs a task of tokio"
    )]
    tokio::spawn(async move { while let Some(Ok(_)) = messages.next().await {} });
    Ok(client)
}

/// Executes statements on a connection of their own.
pub(super) async fn execute(dial: &Dial, sql: &str) -> Result<(), TransportError> {
    let client = connect(dial).await?;
    let executed = client.batch_execute(sql).await;
    executed.map_err(|e| failed(&e, Phase::Write))
}

pub(super) fn dial<T>(config: Config, tls: T) -> Arc<Dial>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    Arc::new(move || {
        let (config, tls) = (config.clone(), tls.clone());
        Box::pin(async move {
            let (client, mut connection) = config.connect(tls).await?;
            let mut is_over = false;
            let messages = stream::poll_fn(move |cx| {
                if is_over {
                    return Poll::Ready(None);
                }
                let message = connection.poll_message(cx);
                is_over = matches!(message, Poll::Ready(None | Some(Err(_))));
                message
            });
            Ok((client, Box::pin(messages) as Messages))
        })
    })
}

/// Executes statements, and meanwhile drives the connection, whose messages are heard.
pub(super) async fn execute_beside(
    client: &Client,
    messages: &mut Messages,
    sql: &str,
    hear: impl Fn(AsyncMessage),
) -> Result<(), Error> {
    let mut executed = std::pin::pin!(client.batch_execute(sql));
    poll_fn(|cx| {
        while let Poll::Ready(Some(Ok(message))) = messages.poll_next_unpin(cx) {
            hear(message);
        }
        executed.as_mut().poll(cx)
    })
    .await
}
