//! What a client knows of its bucket.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AwsCredentialProvider};
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, PutMode, PutPayload, UpdateVersion};
use quorlock_core::transport::TransportError;
use tokio::time::Instant;

use super::error::Failure;
use crate::database::{Phase, process_of};
use crate::links::{self, Links};
use crate::numbered;
use crate::store::Stamp;
use crate::sync::atomic::{AtomicBool, Ordering};

/// How long a client relies on what it has read about its bucket.
const KEPT: Duration = Duration::from_secs(60);

/// The object with the number of the process. It is the same for all prefixes of a bucket, so that a majority notices when two of
/// its addresses lead to one bucket.
const ID: &str = "quorlock.id";

/// A version that no object has.
const NO_VERSION: &str = "\"00000000000000000000000000000000\"";

pub(super) type Link = Links<Session, 1>;

/// A bucket.
pub(super) struct Bucket {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// Where the keys come from that requests are signed with.
    keys: Option<AwsCredentialProvider>,
    /// Whether conditions were seen to be kept.
    is_tried: AtomicBool,
}

/// What is known of a bucket for some time.
pub(super) struct Session {
    pub(super) stamp: Stamp,
    since: Instant,
}

/// An object.
pub(super) struct Found {
    pub(super) data: Vec<u8>,
    pub(super) version: String,
}

impl links::Session for Session {
    type Target = Arc<Bucket>;

    #[expect(clippy::disallowed_methods, reason = "decides no claim")]
    async fn open(bucket: Arc<Bucket>) -> Result<Session, TransportError> {
        let since = Instant::now();
        let id = bucket.open().await;
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

impl Bucket {
    pub(super) fn new(objects: Arc<dyn ObjectStore>) -> Self {
        Bucket {
            objects,
            keys: None,
            is_tried: AtomicBool::new(false),
        }
    }

    pub(super) fn of_driver(driver: AmazonS3) -> Self {
        Bucket {
            keys: Some(driver.credentials().clone()),
            ..Bucket::new(Arc::new(driver))
        }
    }

    /// Returns the number of the process, and looks once whether conditions are kept.
    async fn open(&self) -> Result<u64, Failure> {
        if let Some(keys) = &self.keys {
            keys.get_credential().await.map_err(Failure::NoKeys)?;
        }
        let path = Path::from(ID);
        let found = match self.get(&path).await? {
            Some(found) => found,
            None => self.draw(&path).await?,
        };
        let number = numbered::number(&found.data);
        let number = number.ok_or_else(|| Failure::Strange(ID.to_owned()))?;
        if !self.is_tried.load(Ordering::Relaxed) {
            self.tries_conditions(&path, found.data).await?;
            self.is_tried.store(true, Ordering::Relaxed);
        }
        Ok(number)
    }

    /// Draws the number of the process, unless another client has been faster.
    async fn draw(&self, path: &Path) -> Result<Found, Failure> {
        let drawn = numbered::digits(rand::random()).into_bytes();
        match self.put(path, drawn, PutMode::Create).await {
            Err(failure) if !failure.is_conflict() => return Err(failure),
            _ => {}
        }
        let found = self.get(path).await?;
        found.ok_or_else(|| Failure::Strange(ID.to_owned()))
    }

    /// Writes under conditions that do not hold. A service that ignores them writes what is there already.
    async fn tries_conditions(&self, path: &Path, data: Vec<u8>) -> Result<(), Failure> {
        let other = UpdateVersion {
            e_tag: Some(NO_VERSION.to_owned()),
            version: None,
        };
        for (mode, header) in [
            (PutMode::Create, "If-None-Match"),
            (PutMode::Update(other), "If-Match"),
        ] {
            match self.put(path, data.clone(), mode).await {
                Ok(_) => return Err(Failure::Ignores(header)),
                Err(failure) if failure.is_conflict() => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Returns an object, if it is there. A connection that had ended before the request came is replaced.
    pub(super) async fn get(&self, path: &Path) -> Result<Option<Found>, Failure> {
        let got = match self.get_once(path).await {
            Err(failure) if failure.may_pass() => self.get_once(path).await,
            got => got,
        };
        match got {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.is_missing() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn get_once(&self, path: &Path) -> Result<Found, Failure> {
        let got = self.objects.get_opts(path, GetOptions::default()).await?;
        let version = got.meta.e_tag.clone().ok_or(Failure::NoVersion)?;
        let data = got.bytes().await?.to_vec();
        Ok(Found { data, version })
    }

    /// Writes an object under a condition. Returns its version.
    pub(super) async fn put(
        &self,
        path: &Path,
        data: Vec<u8>,
        mode: PutMode,
    ) -> Result<String, Failure> {
        let put = self
            .objects
            .put_opts(path, PutPayload::from(data), mode.into());
        put.await?.e_tag.ok_or(Failure::NoVersion)
    }
}
