//! What is particular to stores: their tables.

use super::member::Member;
use crate::builder::LocksBuilder;
use crate::error::ConnectError;
use crate::locks::Locks;

impl Locks {
    /// Makes the table that locks need at an address, if it is not there: `postgres://user:password@host/database`, the
    /// same with `mysql://`, or `sqlite:/path/of/the/file`, which also makes the file. Returns whether there is such a table; a Redis server,
    /// etcd, ZooKeeper, MongoDB and S3 need none.
    ///
    /// ```no_run
    /// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
    /// use quorlock::Locks;
    ///
    /// let address = "postgres://shop:secret@db/shop"; // the cargo feature `postgres`
    /// Locks::init(address).await?; // once, by a user who may make tables
    /// let locks = Locks::connect(address).await?;
    /// # drop(locks);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] if the address is not valid, the server cannot be reached, or the user may not make tables.
    pub async fn init(address: impl AsRef<str>) -> Result<bool, ConnectError> {
        let member = Member::open(address.as_ref(), 1, &LocksBuilder::default())?;
        member
            .set_up()
            .await
            .map_err(|problem| ConnectError::Nodes {
                reachable: 0,
                needed: 1,
                of: 1,
                problems: vec![problem],
            })
    }

    /// Returns the SQL that [`Locks::init`] executes, for users who may not make tables; `None` for an address that needs
    /// none. Nothing is sent.
    ///
    /// # Errors
    /// [`ConnectError`] if the address is not valid.
    pub fn schema(address: impl AsRef<str>) -> Result<Option<&'static str>, ConnectError> {
        let member = Member::open(address.as_ref(), 1, &LocksBuilder::default())?;
        Ok(member.schema())
    }
}
