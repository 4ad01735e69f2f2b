//! Stores by their addresses.

use std::sync::Arc;

use crate::address::AddressError;
#[cfg(not(feature = "etcd"))]
use crate::address::ETCD;
use crate::address::MONGODB;
#[cfg(not(feature = "mysql"))]
use crate::address::MYSQL;
#[cfg(not(feature = "postgres"))]
use crate::address::POSTGRES;
#[cfg(not(feature = "s3"))]
use crate::address::S3;
#[cfg(not(feature = "sqlite"))]
use crate::address::SQLITE;
#[cfg(not(feature = "zookeeper"))]
use crate::address::ZOOKEEPER;
#[cfg(feature = "etcd")]
use crate::etcd::EtcdStore;
#[cfg(feature = "mongodb")]
use crate::mongodb::MongodbStore;
#[cfg(feature = "mysql")]
use crate::mysql::MysqlStore;
#[cfg(feature = "postgres")]
use crate::postgres::PostgresStore;
#[cfg(feature = "s3")]
use crate::s3::S3Store;
#[cfg(feature = "sqlite")]
use crate::sqlite::SqliteStore;
use crate::store::Store;
#[cfg(feature = "zookeeper")]
use crate::zookeeper::ZookeeperStore;

/// Returns the store at an address: `sqlite:/path/of/the/file`, or `postgres://user:password@host[:port]/database`, or the
/// same with `mysql://`, or `etcd://[user:password@]host[:port][,host[:port]..][/prefix]`, or the same with `zk://`, or
/// `mongodb://[user:password@]host[:port][,host[:port]..]/database`, or
/// `s3://bucket[/prefix][?endpoint=http://host:port][&region=name]`. Nothing is read or sent yet.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = format!("sqlite:{}/locks", folder.path().display());
/// # #[cfg(feature = "sqlite")]
/// # {
/// use quorlock::Locks;
/// use quorlock_store::{Store, StoreTransport};
///
/// let store = quorlock_store::open(&address)?;
/// store.set_up().await?;
/// let locks = Locks::on_node(StoreTransport::new(store))?;
/// # locks.lock("orders/42").acquire().await?.release().await?;
/// # }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the scheme is not known, the cargo feature of this kind of store is off, or the address is not valid.
pub fn open(address: &str) -> Result<Arc<dyn Store>, AddressError> {
    let address = address.trim();
    let (scheme, _) = address.split_once(':').unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        #[cfg(feature = "etcd")]
        "etcd" => Ok(Arc::new(EtcdStore::new(address)?)),
        #[cfg(not(feature = "etcd"))]
        "etcd" => Err(off(ETCD, "etcd")),
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Arc::new(SqliteStore::at_address(address)?)),
        #[cfg(not(feature = "sqlite"))]
        "sqlite" => Err(off(SQLITE, "sqlite")),
        #[cfg(feature = "mongodb")]
        "mongodb" => Ok(Arc::new(MongodbStore::new(address)?)),
        #[cfg(not(feature = "mongodb"))]
        "mongodb" => Err(off(MONGODB, "mongodb")),
        "mongodb+srv" => Err(AddressError::new(
            MONGODB,
            "has its hosts in a SRV record of DNS, which is not asked",
        )),
        #[cfg(feature = "mysql")]
        "mysql" => Ok(Arc::new(MysqlStore::new(address)?)),
        #[cfg(not(feature = "mysql"))]
        "mysql" => Err(off(MYSQL, "mysql")),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(Arc::new(PostgresStore::new(address)?)),
        #[cfg(not(feature = "postgres"))]
        "postgres" | "postgresql" => Err(off(POSTGRES, "postgres")),
        #[cfg(feature = "s3")]
        "s3" => Ok(Arc::new(S3Store::new(address)?)),
        #[cfg(not(feature = "s3"))]
        "s3" => Err(off(S3, "s3")),
        #[cfg(feature = "zookeeper")]
        "zk" => Ok(Arc::new(ZookeeperStore::new(address)?)),
        #[cfg(not(feature = "zookeeper"))]
        "zk" => Err(off(ZOOKEEPER, "zookeeper")),
        _ => Err(AddressError::of_scheme()),
    }
}

#[cfg(not(all(
    feature = "etcd",
    feature = "mongodb",
    feature = "mysql",
    feature = "postgres",
    feature = "s3",
    feature = "sqlite",
    feature = "zookeeper"
)))]
fn off(form: &'static str, feature: &str) -> AddressError {
    AddressError::new(
        form,
        format!("needs the cargo feature `{feature}`, which is off"),
    )
}
