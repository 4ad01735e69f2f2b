//! A row in a table, as one writes it by hand: `INSERT .. ON CONFLICT DO NOTHING` and `DELETE`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_postgres::{Client, NoTls, Statement};

use super::program::Failure;

/// As many connections as a store of Quorlock has.
const CONNECTIONS: usize = 8;

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS by_hand (name bytea PRIMARY KEY, owner bigint NOT NULL)";
const INSERT: &str = "INSERT INTO by_hand VALUES ($1, $2) ON CONFLICT DO NOTHING";
const DELETE: &str = "DELETE FROM by_hand WHERE name = $1 AND owner = $2";

/// Without a lease, a token, renewal and wake-ups.
#[derive(Clone)]
pub(crate) struct Rows {
    sessions: Arc<Vec<Session>>,
    next: Arc<AtomicU64>,
}

struct Session {
    client: Client,
    insert: Statement,
    delete: Statement,
}

/// A row that is there.
pub(crate) struct Row {
    rows: Rows,
    name: String,
    owner: i64,
}

impl Rows {
    pub(crate) async fn connect(address: &str) -> Result<Rows, Failure> {
        let mut sessions = Vec::new();
        for _ in 0..CONNECTIONS {
            let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
            tokio::spawn(connection);
            client.batch_execute(TABLE).await?;
            sessions.push(Session {
                insert: client.prepare(INSERT).await?,
                delete: client.prepare(DELETE).await?,
                client,
            });
        }
        Ok(Rows {
            sessions: Arc::new(sessions),
            next: Arc::default(),
        })
    }

    fn session(&self, number: i64) -> Result<&Session, Failure> {
        let at = usize::try_from(number)? % CONNECTIONS;
        self.sessions.get(at).ok_or("no connection".into())
    }

    pub(crate) async fn acquire(&self, name: &str) -> Result<Row, Failure> {
        let owner = i64::try_from(self.next.fetch_add(1, Ordering::Relaxed))?;
        let Session { client, insert, .. } = self.session(owner)?;
        match client.execute(insert, &[&name.as_bytes(), &owner]).await? {
            1 => Ok(Row {
                rows: self.clone(),
                name: name.to_owned(),
                owner,
            }),
            _ => Err("not granted".into()),
        }
    }
}

impl Row {
    pub(crate) async fn release(self) -> Result<(), Failure> {
        let Session { client, delete, .. } = self.rows.session(self.owner)?;
        match client
            .execute(delete, &[&self.name.as_bytes(), &self.owner])
            .await?
        {
            1 => Ok(()),
            _ => Err("not freed".into()),
        }
    }
}
