//! The settings of a client, from keyword arguments of Python.

use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use quorlock::redis::{Credentials, LoggingIn, Login, PasswordFile, RedisConfig, Tls, Wait};
use quorlock::{Locks, LocksBuilder, NodeTrust, RetryPolicy};

use crate::arguments::{NameArgument, Span};
use crate::failure;

/// Settings that consist of several arguments, until all of them were read.
#[derive(Default)]
struct Parts {
    retry: RetryPolicy,
    redis: RedisConfig,
    user: Option<String>,
    password: Option<String>,
    password_file: Option<String>,
    tls: Option<Tls>,
    certificate: Option<String>,
    key: Option<String>,
    replicas: Option<u32>,
    replicas_within: Option<Duration>,
    on_disk: bool,
}

/// Returns a builder with these settings.
///
/// # Errors
/// `TypeError` for an unknown setting and for a value of another type, and `ConfigError` for one that cannot be.
pub(crate) fn builder(settings: &Bound<'_, PyDict>) -> PyResult<LocksBuilder> {
    let mut builder = Locks::builder();
    let mut parts = Parts::default();
    for (key, value) in settings {
        let key = key.cast_into::<PyString>()?;
        let name: &str = &key.to_cow()?;
        let set = set(builder, name, &value)
            .and_then(|(builder, is_known)| Ok((builder, is_known || parts.set(name, &value)?)));
        let (changed, is_known) =
            set.map_err(|error| failure::of_argument(settings.py(), name, &error))?;
        if !is_known {
            return Err(PyTypeError::new_err(format!("there is no setting {name}")));
        }
        builder = changed;
    }
    parts.join(settings.py(), builder)
}

/// Sets what is one argument. Returns whether it is one.
fn set(
    builder: LocksBuilder,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<(LocksBuilder, bool)> {
    let builder = match name {
        "watchdog_lease" => builder.watchdog_lease(span(value)?),
        "longest_lease" => builder.longest_lease(span(value)?),
        "member_timeout" => builder.member_timeout(span(value)?),
        "max_hold" => builder.max_hold(span(value)?),
        "token_retention" => {
            let retention: Option<Span> = value.extract()?;
            builder.token_retention(retention.map(|span| span.0))
        }
        "node_trust" => builder.node_trust(trust(value)?),
        "clock_margin" => builder.clock_margin(span(value)?),
        "trust_fresh_nodes" if value.extract()? => builder.trust_fresh_nodes(),
        "trust_fresh_nodes" => builder,
        "watch_claims" => builder.watch_claims(value.extract()?),
        "label" => builder.label(value.extract::<String>()?),
        "namespace" => builder.namespace(value.extract::<NameArgument>()?.0),
        "key_prefix" => builder.key_prefix(value.extract::<NameArgument>()?.0),
        "wait_for_servers" => builder.wait_for_servers(span(value)?),
        _ => return Ok((builder, false)),
    };
    Ok((builder, true))
}

impl Parts {
    /// Sets a part of a setting. Returns whether there is one of this name.
    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let tls = || self.tls.clone().unwrap_or_default();
        let redis = || self.redis.clone();
        match name {
            "backoff" => self.retry = self.retry.backoff(span(value)?),
            "backoff_cap" => self.retry = self.retry.backoff_cap(span(value)?),
            "without_quorum" => self.retry = self.retry.without_quorum(span(value)?),
            "poll_cap" => self.retry = self.retry.poll_cap(span(value)?),
            "connect_timeout" => self.redis = redis().connect_timeout(span(value)?),
            "call_timeout" => self.redis = redis().call_timeout(span(value)?),
            "ping_interval" => self.redis = redis().ping_interval(span(value)?),
            "linger" => self.redis = redis().linger(span(value)?),
            "sentinel_timeout" => self.redis = redis().sentinel_timeout(span(value)?),
            "only_scripts" => self.redis = redis().only_scripts(value.extract()?),
            "user" => self.user = Some(value.extract()?),
            "password" => self.password = Some(value.extract()?),
            "password_file" => self.password_file = Some(path(value)?),
            "tls_ca" => self.tls = Some(tls().roots_file(path(value)?)),
            "tls_server_name" => self.tls = Some(tls().server_name(value.extract::<String>()?)),
            "tls_certificate" => self.certificate = Some(path(value)?),
            "tls_key" => self.key = Some(path(value)?),
            "replicas" => self.replicas = Some(value.extract()?),
            "replicas_within" => self.replicas_within = Some(span(value)?),
            "on_disk" => self.on_disk = value.extract()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn join(self, py: Python<'_>, builder: LocksBuilder) -> PyResult<LocksBuilder> {
        let mut redis = self.redis;
        redis = match (self.password, self.password_file, self.user) {
            (Some(_), Some(_), _) => return Err(both(py, "password", "password_file")),
            (Some(password), None, user) => redis.credentials(Fixed(login(password, user))),
            (None, Some(file), Some(user)) => redis.credentials(PasswordFile::new(file).user(user)),
            (None, Some(file), None) => redis.credentials(PasswordFile::new(file)),
            (None, None, Some(_)) => return Err(alone(py, "user", "password")),
            (None, None, None) => redis,
        };
        let tls = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => {
                let tls = self.tls.unwrap_or_default();
                Some(tls.client_certificate_files(certificate, key))
            }
            (Some(_), None) => return Err(alone(py, "tls_certificate", "tls_key")),
            (None, Some(_)) => return Err(alone(py, "tls_key", "tls_certificate")),
            (None, None) => self.tls,
        };
        if let Some(tls) = tls {
            redis = redis.tls(tls);
        }
        redis = match (self.replicas, self.replicas_within) {
            (Some(replicas), Some(within)) => {
                let wait = Wait::replicas(replicas, within);
                redis.wait(if self.on_disk { wait.on_disk() } else { wait })
            }
            (Some(_), None) => return Err(alone(py, "replicas", "replicas_within")),
            (None, Some(_)) => return Err(alone(py, "replicas_within", "replicas")),
            (None, None) if self.on_disk => return Err(alone(py, "on_disk", "replicas")),
            (None, None) => redis,
        };
        Ok(builder.retry(self.retry).redis(redis))
    }
}

/// A login that does not change.
struct Fixed(Login);

impl Credentials for Fixed {
    fn login(&self) -> LoggingIn<'_> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

fn login(password: String, user: Option<String>) -> Login {
    let login = Login::new(password);
    match user {
        Some(user) => login.user(user),
        None => login,
    }
}

fn span(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    Ok(value.extract::<Span>()?.0)
}

/// A path: text, or an object of `pathlib`.
fn path(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let os = value.py().import("os")?;
    os.call_method1("fspath", (value,))?.extract()
}

fn trust(value: &Bound<'_, PyAny>) -> PyResult<NodeTrust> {
    match value.extract::<String>()?.as_str() {
        "watched" => Ok(NodeTrust::Watched),
        "asserted_durable" => Ok(NodeTrust::AssertedDurable),
        "unwatched" => Ok(NodeTrust::Unwatched),
        other => Err(failure::setting(
            value.py(),
            format!("{other:?} is none of \"watched\", \"asserted_durable\" and \"unwatched\""),
        )),
    }
}

fn both(py: Python<'_>, one: &str, other: &str) -> PyErr {
    failure::setting(
        py,
        format!("{one} and {other} exclude each other: leave one out"),
    )
}

fn alone(py: Python<'_>, one: &str, other: &str) -> PyErr {
    failure::setting(py, format!("{one} needs {other}, too"))
}
