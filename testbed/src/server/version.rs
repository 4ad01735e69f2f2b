//! Which servers are installed.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Returns the server programs to test with: the `redis-server` on the PATH, and those in the variable `QUORLOCK_SERVERS`
/// (paths of other versions of Redis, or of Valkey, separated by `:`).
#[must_use]
pub fn programs() -> Vec<String> {
    let others = std::env::var("QUORLOCK_SERVERS").unwrap_or_default();
    let others = others.split(':').filter(|path| !path.is_empty());
    std::iter::once("redis-server")
        .chain(others)
        .map(String::from)
        .collect()
}

/// Returns whether there is a `redis-server` on the PATH.
#[must_use]
pub fn is_installed() -> bool {
    Command::new("redis-server")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The product of a server program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Product {
    /// Redis.
    Redis,
    /// Valkey, which was forked from version 7.2 of Redis.
    Valkey,
}

/// The major and minor version of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

/// Returns the product and version of the `redis-server` on the PATH, if there is one.
#[must_use]
pub fn version() -> Option<(Product, Version)> {
    static KNOWN: OnceLock<Option<(Product, Version)>> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let output = Command::new("redis-server").arg("--version").output();
        parse_version(&String::from_utf8_lossy(&output.ok()?.stdout))
    })
}

/// Parses `Redis server v=7.0.15 sha=00000000:0 ..`.
fn parse_version(line: &str) -> Option<(Product, Version)> {
    let product = match line.split(' ').next()? {
        "Valkey" => Product::Valkey,
        _ => Product::Redis,
    };
    let (_, numbers) = line.split_once(" v=")?;
    let mut numbers = numbers.split('.').map(str::parse);
    let version = Version {
        major: numbers.next()?.ok()?,
        minor: numbers.next()?.ok()?,
    };
    Some((product, version))
}

/// Returns whether the `redis-server` on the PATH was built with TLS.
#[must_use]
pub fn speaks_tls() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        // Without a certificate, the server ends at once and prints the reason.
        let options = ["--port", "0", "--tls-port", "1"];
        let output = Command::new("redis-server").args(options).output();
        output.is_ok_and(|output| {
            let said = String::from_utf8_lossy(&output.stdout);
            said.contains("Failed to configure TLS")
        })
    })
}
