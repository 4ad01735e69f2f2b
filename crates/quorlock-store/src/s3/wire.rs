//! The HTTP of the driver: one request, sent once, on a connection that may have carried others.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// How long a connection may take.
const CONNECTED: Duration = Duration::from_secs(3);

/// How long a service may take for the head of an answer. After that, it is taken for one that has vanished.
const LONGEST: Duration = Duration::from_secs(10);

/// Makes the driver's requests by `hyper`. The driver would bring another client, with an implementation of cryptography of its own.
#[derive(Debug)]
pub(super) struct Wire;

impl HttpConnector for Wire {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Requests(Arc::default())))
    }
}

type Plain = Client<Tcp, HttpRequestBody>;
type Secure = Client<HttpsConnector<Tcp>, HttpRequestBody>;

/// The connections, which are made with the first request.
#[derive(Clone, Default)]
struct Requests(Arc<Connections>);

#[derive(Default)]
struct Connections {
    plain: OnceCell<Plain>,
    /// Under TLS, by the certificates of the operating system. They are read only if they are needed.
    secure: OnceCell<Secure>,
}

impl Requests {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let Connections {
            plain: over_tcp,
            secure: over_tls,
        } = &*self.0;
        let response = if request.uri().scheme_str() == Some("https") {
            let client = over_tls.get_or_try_init(async || secure());
            client.await?.request(request).await
        } else {
            let client = over_tcp.get_or_init(async || plain());
            client.await.request(request).await
        };
        let (head, body) = response.map_err(failed)?.into_parts();
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}

fn plain() -> Plain {
    Client::builder(TokioExecutor::new()).build(tcp())
}

fn secure() -> Result<Secure, HttpError> {
    let connector = HttpsConnectorBuilder::new().with_native_roots();
    let connector = connector.map_err(|error| HttpError::new(HttpErrorKind::Connect, error))?;
    let connector = connector.https_only().enable_http1();
    let connector = connector.wrap_connector(tcp());
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

fn tcp() -> Tcp {
    let mut tcp = Tcp::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECTED));
    tcp.set_nodelay(true);
    tcp
}

fn failed(error: Error) -> HttpError {
    // Without a connection nothing was sent. Afterwards the request may have been executed.
    let kind = match error.is_connect() {
        true => HttpErrorKind::Connect,
        false => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error)
}

#[async_trait]
impl HttpService for Requests {
    #[expect(
        clippy::disallowed_methods,
        reason = "no caller waits as long as that, and the driver would wait for ever"
    )]
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        match timeout(LONGEST, self.send(request)).await {
            Ok(done) => done,
            Err(late) => Err(HttpError::new(HttpErrorKind::Timeout, late)),
        }
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Requests")
    }
}
