//! A stream under TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::trouble;
use crate::connect::ByteStream;
use crate::error;

/// A stream whose handshake is done, as far as the client goes.
pub(super) struct Secured {
    stream: TlsStream<Box<dyn ByteStream>>,
    /// What is needed to tell why the server refuses the client, until its first answer.
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
        match why.and_then(|u| trouble::of_first_answer(&error, &u.name, &u.note)) {
            Some(words) => error::of_tls(words),
            None => error,
        }
    }

    /// The server that refuses a client's certificate says so and closes: what is written then fails without a word, and the word
    /// can still be read.
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
            // A server that was killed says no good-bye. Replies have lengths of their own: one that was cut is not taken for whole.
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
