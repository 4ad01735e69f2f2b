//! Whether a connection is open, and how long its server has been silent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connect::ByteStream;
use crate::multiplexer::Owed;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::timer::Instant;

/// Patience of a connection that owes no reply, in milliseconds.
const ENDLESS: u64 = u64::MAX;

/// Whether a connection is open, since when it owes a reply, and how long that may last.
#[derive(Debug)]
pub(crate) struct Health {
    opened: Instant,
    closed: AtomicBool,
    /// When the first request was sent since the server last sent anything, in milliseconds after `opened`, plus one;
    /// 0 if no reply is owed.
    asked: AtomicU64,
    /// Shortest patience of the requests since no reply was owed, in milliseconds.
    patience: AtomicU64,
    is_serving: AtomicBool,
    has_served: AtomicBool,
}

impl Health {
    pub(crate) fn new(opened: Instant) -> Self {
        Health {
            opened,
            closed: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            patience: AtomicU64::new(ENDLESS),
            is_serving: AtomicBool::new(false),
            has_served: AtomicBool::new(false),
        }
    }

    fn millis(&self, now: Instant) -> u64 {
        millis(now.saturating_duration_since(self.opened))
    }

    /// Records that a request is sent now. After a silence of `patience`, the connection is suspected.
    pub(crate) fn owes_an_answer(&self, now: Instant, patience: Duration) {
        self.patience.fetch_min(millis(patience), Ordering::Relaxed);
        if self.asked() == 0 {
            self.is_owed_since(now);
        }
    }

    fn is_owed_since(&self, now: Instant) {
        let asked = self.millis(now).saturating_add(1);
        self.asked.store(asked, Ordering::Relaxed);
    }

    fn heard(&self) {
        self.asked.store(0, Ordering::Relaxed);
        if self.is_serving.load(Ordering::Relaxed) {
            self.has_served.store(true, Ordering::Relaxed);
        }
    }

    /// Restores what is owed after something was received.
    pub(crate) fn settle(&self, now: Instant, owed: Owed) {
        if self.asked() != 0 {
            return;
        }
        match owed {
            Owed::Some => self.is_owed_since(now),
            Owed::Nothing => self.patience.store(ENDLESS, Ordering::Relaxed),
        }
    }

    /// Identifies the current silence; 0 if there is none.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// When the silence becomes suspicious, if a reply is owed.
    pub(crate) fn suspicious_at(&self) -> Option<Instant> {
        let asked = self.asked().checked_sub(1)?;
        let since = self.opened.checked_add(Duration::from_millis(asked))?;
        since.checked_add(self.patience())
    }

    /// The shortest patience of the requests since no reply was owed.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience.load(Ordering::Relaxed))
    }

    pub(crate) fn is_silent(&self, now: Instant, patience: Duration) -> bool {
        let asked = self.asked();
        asked != 0 && asked.saturating_add(millis(patience)) <= self.millis(now)
    }

    pub(crate) fn serves(&self) {
        self.is_serving.store(true, Ordering::Relaxed);
    }

    /// Whether a call has been answered on this connection.
    pub(crate) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A stream that records when the server sends something.
pub(crate) struct Watched {
    stream: Box<dyn ByteStream>,
    health: Arc<Health>,
}

impl Watched {
    pub(crate) fn new(stream: Box<dyn ByteStream>, health: Arc<Health>) -> Self {
        Watched { stream, health }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.health.heard();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
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
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer;

    #[test]
    fn a_server_is_silent_when_nothing_is_heard_for_long_after_a_request() {
        let start = timer::now();
        let at = |millis| start + Duration::from_millis(millis);
        let patience = Duration::from_millis(100);
        let health = Health::new(start);
        assert!(!health.is_silent(at(10_000), patience), "nothing was asked");
        health.owes_an_answer(at(10_000), patience);
        health.owes_an_answer(at(10_090), patience);
        assert_eq!(health.suspicious_at(), Some(at(10_100)));
        assert!(!health.is_silent(at(10_100), patience));
        assert!(health.is_silent(at(10_101), patience));
        health.heard();
        assert!(!health.is_silent(at(20_000), patience));
        assert_eq!(health.suspicious_at(), None);
    }

    #[test]
    fn the_shortest_patience_counts_until_nothing_is_owed() {
        let start = timer::now();
        let at = |millis| start + Duration::from_millis(millis);
        let health = Health::new(start);
        health.owes_an_answer(at(0), Duration::from_millis(500));
        health.owes_an_answer(at(10), Duration::from_millis(100));
        assert_eq!(health.suspicious_at(), Some(at(100)));
        health.heard();
        health.settle(at(50), Owed::Some);
        assert_eq!(health.suspicious_at(), Some(at(150)), "one reply of two");
        health.heard();
        health.settle(at(60), Owed::Nothing);
        health.owes_an_answer(at(200), Duration::from_millis(500));
        assert_eq!(health.suspicious_at(), Some(at(700)));
        health.owes_an_answer(at(200), Duration::MAX);
        assert_eq!(health.suspicious_at(), Some(at(700)));
    }
}
