//! `quorlock init`.

use std::collections::BTreeSet;

use clap::Args;
use quorlock::Locks;

use super::{done, print};
use crate::failure::{Code, Failure};
use crate::settings::Reach;

/// Make the table that locks need in PostgreSQL, MySQL, MariaDB and SQLite, if it is not there; of SQLite also the file.
///
/// Says nothing if the table is there in the end. A Redis server, etcd, ZooKeeper, MongoDB and S3 need none. With --print, the SQL is printed instead, for
/// those who may not make tables.
#[derive(Clone, Debug, Args)]
pub(crate) struct Init {
    #[command(flatten)]
    reach: Reach,
    /// Print the SQL, and execute nothing.
    #[arg(long)]
    print: bool,
    /// Addresses as in --nodes, instead of those.
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<String>,
}

impl Init {
    pub(crate) fn run(mut self) -> Code {
        self.reach.nodes.append(&mut self.addresses);
        done(async {
            let addresses = self.reach.settings()?.addresses;
            if !self.print {
                for address in &addresses {
                    Locks::init(address).await?;
                }
                return Ok(Code::SUCCESS);
            }
            let mut schemas = BTreeSet::new();
            for address in &addresses {
                schemas.extend(Locks::schema(address)?);
            }
            if schemas.is_empty() {
                let text = "no table is needed: --print is for mysql://, postgres:// and sqlite:";
                return Err(Failure::usage(text));
            }
            for schema in schemas {
                print(schema.trim_end())?;
            }
            Ok(Code::SUCCESS)
        })
    }
}
