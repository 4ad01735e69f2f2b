//! The task of a connection.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quorlock_core::transport::TransportError;
use redis::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::hearing::Hearing;
use super::queue::Load;
use super::{Multiplexer, Passed, wake};
use crate::connect::ByteStream;
use crate::error;
use crate::resp::{Decoder, NoReply};
use crate::script::{self, By, Home};
use crate::subscription::registry::Registry;
use crate::timer::{self, Sleep};

/// Number of bytes that are read from the stream at once. The decoder keeps an incomplete reply.
const BUFFER: usize = 16 * 1024;

/// Number of replies that are passed on before callers get a turn. What those callers send next is sent while the
/// rest is passed on. Otherwise the server would wait for all callers, and then all callers for the server. With 16 instead
/// of 64, callers of locks without scripts, which take up to three replies, send a seventh less in the same time.
const BATCH: usize = 64;

/// Sends requests to the server and receives replies, until the stream ends.
pub(crate) struct Driver {
    stream: Box<dyn ByteStream>,
    multiplexer: Arc<Multiplexer>,
    writing: Vec<u8>,
    written: usize,
    is_flushed: bool,
    reading: Box<[u8]>,
    /// The part of `reading` that was read from the stream and not yet decoded.
    undecoded: Range<usize>,
    decoder: Decoder,
    /// Replies that were decoded and not yet passed on; empty between polls.
    replies: Vec<Value>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Receives what the server publishes; `None` on a connection for calls.
    hearing: Option<Hearing>,
    /// Called when queued requests are sent, with the silence that is suspicious from then on.
    owes: Owes,
    /// Calls that were taken from the queue and not yet written; empty between polls.
    loads: Vec<Load>,
}

/// Called for a request before it can leave.
pub(crate) type Owes = Box<dyn Fn(Duration) + Send>;

impl Driver {
    pub(crate) fn new(
        stream: Box<dyn ByteStream>,
        multiplexer: Arc<Multiplexer>,
        registry: Option<Arc<Registry>>,
        owes: Owes,
    ) -> Self {
        Driver {
            stream,
            multiplexer,
            hearing: registry.map(Hearing::new),
            owes,
            loads: Vec::new(),
            writing: Vec::new(),
            written: 0,
            is_flushed: true,
            reading: vec![0; BUFFER].into(),
            undecoded: 0..0,
            decoder: Decoder::default(),
            replies: Vec::with_capacity(BATCH),
            timer: None,
        }
    }

    /// Takes the commands and requests of callers, if everything that was taken before is written to the stream.
    fn load(&mut self, cx: &Context<'_>) {
        let mut state = self.multiplexer.lock();
        match &mut state.driver {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        if self.written == self.writing.len() {
            self.written = 0;
            self.writing.clear();
            state.close_bundle();
            std::mem::swap(&mut self.writing, &mut state.outbox);
            // While a write is stuck, more requests gather, and a request that is cancelled meanwhile is not sent.
            while let Some(load) = state.next_call() {
                self.loads.push(load);
            }
        }
        // Requests are encoded without the mutex: every caller that sends or takes a reply would wait for it.
        drop(state);
        for load in self.loads.drain(..) {
            let (cmd, patience) = match load {
                Load::Packed(packed) => {
                    self.writing.extend_from_slice(&packed);
                    continue;
                }
                Load::Alone(member, patience) => {
                    // Requests to a cluster are never in the queue.
                    let cmd = script::encode(member.request(), &Home::PLAIN, By::Digest);
                    (cmd, patience)
                }
                Load::Together(batch, patience, by) => (batch.encode(by), patience),
            };
            (self.owes)(patience);
            cmd.write_packed_command(&mut self.writing);
        }
    }

    /// Ready only with an error.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<TransportError> {
        while let Some(rest) = self.writing.get(self.written..)
            && !rest.is_empty()
        {
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(error::closed("it accepts no bytes")),
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    self.is_flushed = false;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(error::broken(&error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if !self.is_flushed {
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Ready(Ok(())) => self.is_flushed = true,
                Poll::Ready(Err(error)) => return Poll::Ready(error::broken(&error)),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }

    /// Ready only with an error.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<TransportError> {
        loop {
            match self.pass_on() {
                Ok(BATCH) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(error),
            }
            let mut room = ReadBuf::new(&mut self.reading);
            match Pin::new(&mut self.stream).poll_read(cx, &mut room) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(error::broken(&error)),
                Poll::Pending => return Poll::Pending,
            }
            self.undecoded = 0..room.filled().len();
            if self.undecoded.is_empty() {
                return Poll::Ready(error::closed("the server closed it"));
            }
        }
    }

    /// Passes complete replies on to their callers. Returns their number, which is at most a batch.
    fn pass_on(&mut self) -> Result<usize, TransportError> {
        if self.undecoded.is_empty() {
            return Ok(0);
        }
        // Decode outside the mutex: otherwise callers would wait while a reply of megabytes is decoded.
        let decoded = self.decode().map_err(error::refused_reply);
        let replies = self.replies.len();
        if replies == 0 {
            return decoded.map(|()| 0);
        }
        let mut passed = Passed::default();
        let mut is_asked_for = true;
        {
            let mut state = self.multiplexer.lock();
            for value in self.replies.drain(..) {
                let reply = match &mut self.hearing {
                    Some(hearing) => hearing.take(value),
                    None => Some(value),
                };
                if let Some(reply) = reply {
                    is_asked_for &= state.reply(reply, &mut passed);
                }
            }
        }
        let unasked = match passed.unwanted.last() {
            _ if is_asked_for => None,
            // A server that turns a client away says so without being asked.
            Some(Value::ServerError(farewell)) => Some(error::turned_away(farewell)),
            _ => Some(error::no_reply("a reply without a request")),
        };
        passed.wake();
        if let Some(hearing) = &mut self.hearing {
            hearing.tell();
        }
        if let Some(error) = unasked {
            return Err(error);
        }
        decoded.map(|()| replies)
    }

    /// Decodes what was read, up to a batch of replies.
    fn decode(&mut self) -> Result<(), NoReply> {
        while self.replies.len() < BATCH
            && let Some(rest) = self.reading.get(self.undecoded.clone())
            && !rest.is_empty()
        {
            let decoded = self.decoder.decode(rest)?;
            self.undecoded.start += decoded.used;
            self.replies.extend(decoded.reply);
        }
        Ok(())
    }

    /// Ends requests that have timed out, and sets the timer for the next.
    fn poll_deadlines(&mut self, cx: &mut Context<'_>) {
        loop {
            let Some(earliest) = self.multiplexer.lock().earliest else {
                return;
            };
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(timer::sleep_until(earliest)));
            if earliest < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(earliest);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return;
            }
            let mut woken = Vec::new();
            self.multiplexer.lock().expire(timer::now(), &mut woken);
            wake(woken);
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        loop {
            driver.load(cx);
            if let Poll::Ready(error) = driver.poll_write(cx) {
                // What the server said before it closed the connection may be unread.
                let error = match driver.poll_read(cx) {
                    Poll::Ready(said) if error::is_farewell(&said) => said,
                    _ => error,
                };
                driver.multiplexer.close(&error);
                return Poll::Ready(());
            }
            let is_stuck = driver.written < driver.writing.len();
            if is_stuck || !driver.multiplexer.lock().has_more() {
                break;
            }
        }
        if let Poll::Ready(error) = driver.poll_read(cx) {
            driver.multiplexer.close(&error);
            return Poll::Ready(());
        }
        driver.poll_deadlines(cx);
        // The replies that were just read may allow queued requests to leave. The driver yields first, so that the callers
        // that got these replies can send their next requests in the same batch.
        if driver.written == driver.writing.len() && driver.multiplexer.lock().has_more() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The driver is dropped together with its runtime, or because the connection is no longer used.
        self.multiplexer.close(&error::closed("it is not in use"));
    }
}
