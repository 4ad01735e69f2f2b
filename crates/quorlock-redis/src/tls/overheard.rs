//! The first bytes that a server sends before a connection is encrypted.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use redis::{ServerError, Value};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connect::ByteStream;
use crate::sync::Mutex;

/// The longest line that is kept, in bytes.
const MOST: usize = 1024;

/// The first bytes of a stream, which its other end may have sent instead of TLS.
#[derive(Clone, Default)]
pub(super) struct FirstBytes(Arc<Mutex<Vec<u8>>>);

impl FirstBytes {
    /// Returns the error line of a Redis server, if the stream began with one.
    pub(super) fn farewell(&self) -> Option<ServerError> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let line = bytes.get(..end + 2).filter(|line| line.starts_with(b"-"))?;
        match redis::parse_redis_value(line) {
            Ok(Value::ServerError(words)) => Some(words),
            _ => None,
        }
    }
}

/// A stream whose first bytes are kept.
pub(super) struct Overheard {
    stream: Box<dyn ByteStream>,
    /// `None` after the first bytes.
    first: Option<FirstBytes>,
}

impl Overheard {
    pub(super) fn new(stream: Box<dyn ByteStream>, first: FirstBytes) -> Self {
        let first = Some(first);
        Overheard { stream, first }
    }
}

impl AsyncRead for Overheard {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = room.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, room);
        let new = room.filled().get(before..).unwrap_or_default();
        if !new.is_empty()
            && let Some(FirstBytes(kept)) = this.first.take()
        {
            let new = new.get(..MOST).unwrap_or(new);
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(new);
        }
        read
    }
}

impl AsyncWrite for Overheard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
