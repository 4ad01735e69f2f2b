//! A store in objects of S3, and of services like it.

mod error;
mod object;
mod place;
mod session;
mod wire;

use std::fmt;
use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::{PutMode, RetryConfig, UpdateVersion};

use self::error::Failure;
use self::object::Folder;
use self::place::Place;
use self::session::{Bucket, Link};
use self::wire::Wire;
use crate::address::{AddressError, S3};
use crate::database::Phase;
use crate::numbered;
use crate::store::{
    Draft, Key, KeysCall, ReadCall, Snapshot, Store, Stored, Version, WriteCall, Written,
};

/// A store in objects of S3, or of a service that speaks its protocol and has conditional writes (`If-None-Match` and `If-Match` of
/// `PutObject`). Clones are the same store.
///
/// A service that ignores the conditions is found out by the first call: it writes the object `quorlock.id` under conditions that do
/// not hold. Objects have no clock that clients may read, so dead claims end by what clients have observed, and no record is ever
/// deleted: each name that was ever locked keeps its token counter. The bucket must have no rule that deletes objects. Waiters read their
/// record again from time to time ([`StoreTransport::poll_every`](crate::StoreTransport::poll_every)), and each reading is a request that
/// the service may charge.
///
/// The process is a number in the object `quorlock.id` of the bucket, which the first client draws and each reads again after a minute.
/// Delete that object after data were restored from a copy: otherwise a majority does not notice that claims are missing.
///
/// Connections are made when they are needed, on the tokio runtime in whose context the store is used.
#[derive(Clone)]
pub struct S3Store {
    shared: Arc<Shared>,
}

struct Shared {
    address: String,
    folder: Folder,
    bucket: Arc<Bucket>,
    link: Link,
}

impl S3Store {
    /// Returns a store at an address such as `s3://bucket/prefix` or
    /// `s3://bucket?endpoint=http://127.0.0.1:9000&region=eu-west-1`. The names of the objects begin with `quorlock/`, if the address has no
    /// other prefix. Nothing is sent.
    ///
    /// Keys to sign with are never in an address. They come from the environment, as for the tools of AWS (`AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`), or from the role of the pod, the task or the machine. So do the region and the endpoint
    /// of an address without them (`AWS_REGION`, `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`).
    ///
    /// # Errors
    /// If the address is not valid, or the environment has half of a pair of keys.
    pub fn new(address: &str) -> Result<Self, AddressError> {
        Self::with_builder(address, AmazonS3Builder::from_env())
    }

    /// Returns a store at an address, with what the builder of the driver has, such as another source of keys.
    ///
    /// The store sets the bucket, conditional writes, the client of HTTP, and that the driver repeats no request. The region and the endpoint of the
    /// address take the place of the builder's.
    ///
    /// # Errors
    /// If the address is not valid, or the builder lacks something.
    pub fn with_builder(address: &str, builder: AmazonS3Builder) -> Result<Self, AddressError> {
        let wrong = |problem: String| AddressError::new(S3, problem);
        let place = Place::parse(address)?;
        let folder = Folder::new(&place.folder).map_err(|problem| wrong(problem.to_owned()))?;
        let set = |key| builder.get_config_value(&key);
        let named = set(AmazonS3ConfigKey::S3Endpoint).or_else(|| set(AmazonS3ConfigKey::Endpoint));
        let endpoint = match (&place.endpoint, named) {
            (Some(endpoint), _) => Some(endpoint.clone()),
            (None, Some(named)) => Some(place::endpoint_of(&named).map_err(wrong)?),
            (None, None) => None,
        };
        // A write that is sent again would be told that its own first copy stands in its way.
        let no_retries = RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        };
        let mut builder = builder
            .with_bucket_name(&place.bucket)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_retry(no_retries)
            .with_http_connector(Wire);
        if let Some(region) = &place.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &endpoint {
            let key = AmazonS3ConfigKey::S3Endpoint;
            builder = builder.with_config(key, endpoint).with_allow_http(true);
        }
        let driver = builder.build();
        let driver = driver.map_err(|error| wrong(format!("cannot be used: {error}")))?;
        let shown = place.shown(endpoint.as_deref());
        Ok(Self::on(Bucket::of_driver(driver), folder, shown))
    }

    fn on(bucket: Bucket, folder: Folder, address: String) -> Self {
        let bucket = Arc::new(bucket);
        let shared = Shared {
            address,
            folder,
            link: Link::new(bucket.clone()),
            bucket,
        };
        S3Store {
            shared: Arc::new(shared),
        }
    }
}

impl Store for S3Store {
    fn read(&self, key: &Key) -> ReadCall {
        let (shared, key) = (self.shared.clone(), key.clone());
        Box::pin(async move {
            let stamp = shared.link.session().await?.stamp;
            let read = shared.read(&key).await;
            let stored = read.map_err(|failure| failure.into_error(Phase::Read))?;
            Ok(Snapshot { stored, stamp })
        })
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let (shared, key, version) = (self.shared.clone(), key.clone(), version.cloned());
        Box::pin(async move {
            let stamp = shared.link.session().await?.stamp;
            match shared.write(&key, version.as_ref(), &draft).await {
                Ok(Some(version)) => Ok(Written::Stored { version, stamp }),
                Ok(None) => Ok(Written::Conflict),
                Err(failure) => Err(failure.into_error(Phase::Write)),
            }
        })
    }

    /// All keys are in one list: the order of the names is not that of the bytes of the keys.
    fn keys(&self, after: Option<&Key>) -> KeysCall {
        let (shared, after) = (self.shared.clone(), after.cloned());
        Box::pin(async move {
            shared.link.session().await?;
            let keys = shared.keys(after.as_ref()).await;
            keys.map_err(|error| Failure::from(error).into_error(Phase::Read))
        })
    }

    fn address(&self) -> &str {
        &self.shared.address
    }
}

impl Shared {
    async fn read(&self, key: &Key) -> Result<Option<Stored>, Failure> {
        let path = self.folder.object(key)?;
        let Some(found) = self.bucket.get(&path).await? else {
            return Ok(None);
        };
        let parsed = numbered::parse(found.data);
        let (_, record) = parsed.ok_or_else(|| Failure::Strange(path.to_string()))?;
        let version = Version::new(found.version);
        Ok(Some(Stored { record, version }))
    }

    /// Writes a record. Returns its version, if it was stored.
    async fn write(
        &self,
        key: &Key,
        version: Option<&Version>,
        draft: &Draft,
    ) -> Result<Option<Version>, Failure> {
        let path = self.folder.object(key)?;
        let mode = match version {
            None => PutMode::Create,
            Some(version) => match e_tag(version) {
                Some(e_tag) => PutMode::Update(UpdateVersion {
                    e_tag: Some(e_tag),
                    version: None,
                }),
                // A version that is none of this store is one that no record has.
                None => return Ok(None),
            },
        };
        // The version of an object is made of its data. They have the number of the write, so that it does not come back.
        match self.bucket.put(&path, numbered::data(draft), mode).await {
            Ok(version) => Ok(Some(Version::new(version))),
            Err(failure) if failure.is_conflict() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn keys(&self, after: Option<&Key>) -> object_store::Result<Vec<Key>> {
        let objects = self.bucket.objects.list(Some(self.folder.path()));
        let keys = objects.try_filter_map(async |object| Ok(self.folder.key(&object.location)));
        let mut keys: Vec<Key> = keys.try_collect().await?;
        keys.retain(|key| after.is_none_or(|after| after < key));
        keys.sort_unstable();
        Ok(keys)
    }
}

fn e_tag(version: &Version) -> Option<String> {
    let text = std::str::from_utf8(version.as_bytes()).ok()?;
    let is_one = text.bytes().all(|byte| byte.is_ascii_graphic());
    is_one.then(|| text.to_owned())
}

impl fmt::Debug for S3Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("S3Store")
            .field(&self.shared.address)
            .finish()
    }
}
