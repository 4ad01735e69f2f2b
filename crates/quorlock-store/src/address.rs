//! Addresses of stores.

use std::fmt;

/// The form of an address of a file.
pub(crate) const SQLITE: &str = "sqlite:/path/of/the/file";

/// The form of an address of a database of MySQL or MariaDB.
pub(crate) const MYSQL: &str = "mysql://user:password@host[:port]/database";

/// The form of an address of a PostgreSQL database.
pub(crate) const POSTGRES: &str = "postgres://user:password@host[:port]/database";

/// The form of an address of keys in etcd.
pub(crate) const ETCD: &str = "etcd://[user:password@]host[:port][,host[:port]..][/prefix]";

/// The form of an address of znodes in ZooKeeper.
pub(crate) const ZOOKEEPER: &str = "zk://[user:password@]host[:port][,host[:port]..][/prefix]";

/// The form of an address of documents in MongoDB.
pub(crate) const MONGODB: &str =
    "mongodb://[user:password@]host[:port][,host[:port]..]/database[?replicaSet=name]";

/// The form of an address of objects in S3 or a service like it.
pub(crate) const S3: &str = "s3://bucket[/prefix][?endpoint=http://host:port][&region=name]";

/// Why the address of a store cannot be used. The error contains no password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressError {
    /// The scheme that is shown of the address, if it is known. The rest may be a part of a password.
    scheme: Option<&'static str>,
    /// What is wrong, a predicate whose subject is the address.
    problem: String,
    /// How an address of this kind is written.
    form: Option<&'static str>,
}

impl AddressError {
    /// Returns the error of an address whose scheme is not known.
    pub(crate) fn of_scheme() -> Self {
        AddressError {
            scheme: None,
            problem: format!(
                "has no scheme of a store: write {SQLITE}, {POSTGRES}, {MYSQL}, {ETCD}, {ZOOKEEPER}, {MONGODB} or {S3}"
            ),
            form: None,
        }
    }

    /// Returns the error of an address of this form.
    pub(crate) fn new(form: &'static str, problem: impl Into<String>) -> Self {
        AddressError {
            scheme: form.split(':').next(),
            problem: problem.into(),
            form: Some(form),
        }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the address ")?;
        if let Some(scheme) = self.scheme {
            write!(f, "{scheme}:.. ")?;
        }
        f.write_str(&self.problem)?;
        match self.form {
            Some(form) => write!(f, ": write {form}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for AddressError {}
