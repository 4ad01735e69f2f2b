//! A stream under TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::explained;
use crate::connect::ByteStream;
use crate::error;

/// A stream after the client's part of the handshake.
pub(super) struct Secured {
    stream: TlsStream<Box<dyn ByteStream>>,
    /// What is needed to explain a refusal by the server; `None` after the server's first answer.
    unanswered: Option<Unanswered>,
}

struct Unanswered {
    name: String,
    note: Option<String>,
}

impl Secured {
    pub(super) fn new(
        stream: TlsStream<Box<dyn ByteStream>>,
        name: String,
        note: Option<String>,
    ) -> Self {
        Secured {
            stream,
            unanswered: Some(Unanswered { name, note }),
        }
    }

    fn explained(&self, error: io::Error) -> io::Error {
        let why = self.unanswered.as_ref();
        match why.and_then(|u| explained::of_first_answer(&error, &u.name, &u.note)) {
            Some(words) => error::of_tls(words),
            None => error,
        }
    }

    /// A server that refuses a client's certificate sends an alert and closes the connection. A write then fails without
    /// the reason, but the alert can still be read.
    fn explained_write(&mut self, cx: &mut Context<'_>, error: io::Error) -> io::Error {
        if self.unanswered.is_none() {
            return error;
        }
        let mut byte = [0];
        let mut room = ReadBuf::new(&mut byte);
        match Pin::new(&mut self.stream).poll_read(cx, &mut room) {
            Poll::Ready(Err(why)) => self.explained(why),
            _ => error,
        }
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_read(cx, room) {
            Poll::Ready(Ok(())) => {
                this.unanswered = None;
                Poll::Ready(Ok(()))
            }
            // A killed server sends no close message. Replies state their lengths, so a truncated reply is not taken
            // for a complete one.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(this.explained(error))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        written.map_err(|error| this.explained_write(cx, error))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        flushed.map_err(|error| this.explained_write(cx, error))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
