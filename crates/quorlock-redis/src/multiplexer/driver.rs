//! The task of a connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::message::Wake;
use quorlock_core::transport::TransportError;
use redis::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Multiplexer, wake};
use crate::connect::ByteStream;
use crate::subscription::Register;
use crate::timer::{self, Sleep};
use crate::{error, resp};

/// The buffer that replies are read into begins with this size
const BUFFER: usize = 16 * 1024;

/// and grows up to this one, for a single reply.
const MOST_BUFFER: usize = 16 * 1024 * 1024;

/// How many replies are passed on before callers have their turn. What those send next is on its way while the rest is
/// passed on: otherwise the server waits for all of the callers, and then all of them wait for the server.
const BATCH: usize = 16;

/// Carries requests to the server and replies back, until the stream ends.
pub(crate) struct Driver {
    stream: Box<dyn ByteStream>,
    multiplexer: Arc<Multiplexer>,
    writing: Vec<u8>,
    written: usize,
    is_flushed: bool,
    reading: Vec<u8>,
    /// How much of `reading` has been read.
    filled: usize,
    timer: Option<Pin<Box<Sleep>>>,
    /// Who hears what the server publishes.
    register: Option<Arc<Register>>,
}

impl Driver {
    pub(crate) fn new(
        stream: Box<dyn ByteStream>,
        multiplexer: Arc<Multiplexer>,
        register: Option<Arc<Register>>,
    ) -> Self {
        Driver {
            stream,
            multiplexer,
            register,
            writing: Vec::new(),
            written: 0,
            is_flushed: true,
            reading: vec![0; BUFFER],
            filled: 0,
            timer: None,
        }
    }

    /// Takes what callers have written, if what was taken before is on its way.
    fn load(&mut self, cx: &Context<'_>) {
        let mut state = self.multiplexer.lock();
        match &mut state.driver {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        if self.written == self.writing.len() {
            self.written = 0;
            self.writing.clear();
            std::mem::swap(&mut self.writing, &mut state.outbox);
        }
    }

    /// Ready only with an error.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<TransportError> {
        while let Some(rest) = self.writing.get(self.written..)
            && !rest.is_empty()
        {
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(error::closed("it takes no more bytes")),
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    self.is_flushed = false;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(error::closed(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if !self.is_flushed {
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Ready(Ok(())) => self.is_flushed = true,
                Poll::Ready(Err(error)) => return Poll::Ready(error::closed(error)),
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
            if self.filled == self.reading.len() {
                if MOST_BUFFER <= self.filled {
                    return Poll::Ready(error::no_reply("a reply of more than 16 MiB"));
                }
                self.reading.resize(2 * self.filled, 0);
            }
            let room = self.reading.get_mut(self.filled..).unwrap_or_default();
            let mut room = ReadBuf::new(room);
            match Pin::new(&mut self.stream).poll_read(cx, &mut room) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(error::closed(error)),
                Poll::Pending => return Poll::Pending,
            }
            let count = room.filled().len();
            if count == 0 {
                return Poll::Ready(error::closed("the server closed it"));
            }
            self.filled += count;
        }
    }

    /// Gives replies that are complete to those that wait for them: how many, a batch at most.
    fn pass_on(&mut self) -> Result<usize, TransportError> {
        if self.filled == 0 {
            return Ok(0);
        }
        let mut woken = Vec::new();
        let mut published = Vec::new();
        let mut done = 0;
        let mut replies = 0;
        let result = {
            let mut state = self.multiplexer.lock();
            loop {
                if replies == BATCH {
                    break Ok(BATCH);
                }
                let rest = self.reading.get(done..self.filled).unwrap_or_default();
                match resp::decode(rest) {
                    Ok(Some((value, len))) => {
                        done += len;
                        replies += 1;
                        if self.register.is_some() && is_message(&value) {
                            published.push(value);
                        } else if !state.reply(value, &mut woken) {
                            break Err(error::no_reply("a reply that nobody asked for"));
                        }
                    }
                    Ok(None) => break Ok(replies),
                    Err(resp::NoReply) => break Err(error::no_reply("it is no Redis server")),
                }
            }
        };
        self.reading.copy_within(done..self.filled, 0);
        self.filled -= done;
        wake(woken);
        if let Some(register) = &self.register {
            for message in &published {
                announce(register, message);
            }
        }
        result
    }

    /// Ends the requests that are out of time, and sets the timer for the next.
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
                driver.multiplexer.close(&error);
                return Poll::Ready(());
            }
            let is_stuck = driver.written < driver.writing.len();
            if is_stuck || driver.multiplexer.lock().outbox.is_empty() {
                break;
            }
        }
        if let Poll::Ready(error) = driver.poll_read(cx) {
            driver.multiplexer.close(&error);
            return Poll::Ready(());
        }
        driver.poll_deadlines(cx);
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Together with its runtime, or because the connection is used no more.
        self.multiplexer.close(&error::closed("it is used no more"));
    }
}

/// Whether it is no reply, but what the server publishes: `message`, channel, payload.
fn is_message(value: &Value) -> bool {
    matches!(
        value,
        Value::Array(parts) if matches!(parts.first(), Some(Value::BulkString(kind)) if kind == b"message")
    )
}

/// Wakes those that listen to a message's channel.
fn announce(register: &Register, message: &Value) {
    let Value::Array(parts) = message else {
        return;
    };
    if let [_, Value::BulkString(channel), Value::BulkString(payload)] = parts.as_slice()
        && let Ok(channel) = std::str::from_utf8(channel)
    {
        let wake = match payload.as_slice() {
            b"1" => Wake::ReadersMayEnter,
            _ => Wake::Unlocked,
        };
        register.wake(channel, wake);
    }
}
