//! The program of the page "Connect with TLS and a login", word for word. A test runs it with a server that speaks TLS.

use std::process::ExitCode;

use quorlock::Locks;
use quorlock::redis::{PasswordFile, RedisConfig, Tls};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, ca, certificate, key, password] = arguments.as_slice() else {
        eprintln!("usage: encrypted ADDRESS CA CERTIFICATE KEY PASSWORD_FILE");
        return ExitCode::FAILURE;
    };
    // rediss://locks@redis.example:6380/ with files in PEM, and a password in the first line of a file.
    let tls = Tls::new()
        .roots_file(ca)
        .client_certificate_files(certificate, key);
    let redis = RedisConfig::default()
        .tls(tls)
        .credentials(PasswordFile::new(password));
    match work(address, redis).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn work(address: &str, redis: RedisConfig) -> Result<(), Box<dyn std::error::Error>> {
    let locks = Locks::builder().redis(redis).connect(address).await?;
    let guard = locks.lock("orders/42").acquire().await?;
    println!("orders/42 is locked, over TLS");
    guard.release().await?;
    locks.close().await;
    Ok(())
}
