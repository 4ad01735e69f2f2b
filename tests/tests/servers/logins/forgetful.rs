//! A server that has dropped a login.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use quorlock::redis::{ByteStream, Connect, Connecting, Endpoint, Network};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Connects through a stream that replaces one reply with a refusal when the flag is set.
#[derive(Clone, Debug, Default)]
pub(super) struct Forgetful(pub(super) Arc<AtomicBool>);

struct Forgetting {
    stream: Box<dyn ByteStream>,
    forgets: Arc<AtomicBool>,
}

impl Connect for Forgetful {
    fn connect(&self, to: &Endpoint) -> Connecting {
        let (connecting, forgets) = (Network.connect(to), self.0.clone());
        Box::pin(async move {
            let stream = connecting.await?;
            Ok(Box::new(Forgetting { stream, forgets }) as Box<dyn ByteStream>)
        })
    }
}

impl AsyncRead for Forgetting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, room);
        if read.is_ready() && self.forgets.swap(false, Ordering::SeqCst) {
            room.clear();
            room.put_slice(b"-NOAUTH Authentication required.\r\n");
        }
        read
    }
}

impl AsyncWrite for Forgetting {
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
}
