//! Requests to other services.

use std::fmt;
use std::future::Future;
use std::io;
use std::time::Duration;

use axum::http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The port of every service.
pub const PORT: u16 = 8080;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Opens connections.
pub trait Dial: Clone + fmt::Debug + Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Connects to a service by its name.
    ///
    /// # Errors
    /// That of the network.
    fn dial(&self, service: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// The network of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Tcp;

impl Dial for Tcp {
    type Stream = TcpStream;

    async fn dial(&self, service: &str) -> io::Result<TcpStream> {
        TcpStream::connect((service, PORT)).await
    }
}

/// Why a request has no answer. It may have been executed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No answer in time.
    #[error("no answer within {PATIENCE:?}")]
    TimedOut,
    /// No connection.
    #[error("no connection: {0}")]
    Connect(#[from] io::Error),
    /// The connection has failed.
    #[error("the connection has failed: {0}")]
    Broken(#[from] hyper::Error),
}

/// Sends JSON to a service. Returns the status and the text of the answer.
///
/// # Errors
/// [`CallError`] without an answer.
pub async fn post<D: Dial>(
    dial: &D,
    service: &str,
    path: &str,
    body: &impl Serialize,
) -> Result<(StatusCode, String), CallError> {
    let body = serde_json::to_vec(body).unwrap_or_default();
    let request = Request::post(path)
        .header(header::HOST, service)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let exchange = async {
        let stream = TokioIo::new(dial.dial(service).await?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let text = answer.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8_lossy(&text).into_owned()))
    };
    match tokio::time::timeout(PATIENCE, exchange).await {
        Ok(answered) => answered,
        Err(_) => Err(CallError::TimedOut),
    }
}
