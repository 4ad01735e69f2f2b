//! The task that has the wake-up connection.
//!
//! It speaks RESP2 on a connection of its own, so that one server's messages can neither delay replies nor be
//! mistaken for them. One request is under way at a time; meanwhile messages are passed on.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use futures_util::Stream;
use quorlock_core::message::Wake;
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use redis::{Msg, RedisError, Value};

use crate::subscription::{Channel, Duty, Order, Register};
use crate::target::Target;
use crate::timer::{self, Instant};

/// How many channels one `SUBSCRIBE` names.
const BATCH: usize = 128;

/// Connects, serves the register, and connects again, until nobody has listened for a while or the transport is gone.
pub(crate) async fn run(target: Arc<Target>, duty: Duty) {
    let mut failures = 0;
    loop {
        if let Some(pubsub) = open(&target).await {
            let mut session = Session::new(&target, duty.register(), pubsub);
            session.serve().await;
            if session.was_confirmed {
                failures = 0;
            }
        }
        duty.register().forget();
        if duty.is_over() {
            return;
        }
        failures += 1;
        timer::sleep_until(timer::now() + timer::delay(failures)).await;
        if duty.is_over() {
            return;
        }
    }
}

/// Why it failed is told by the next call, which goes to the same server.
async fn open(target: &Target) -> Option<PubSub> {
    let deadline = timer::now() + target.config().connect_timeout;
    timer::by(deadline, async {
        let stream = target.stream().await.ok()?;
        PubSub::new(target.login(), stream).await.ok()
    })
    .await?
}

/// One connection, from its first request to its end.
struct Session<'a> {
    target: &'a Target,
    register: &'a Register,
    sink: PubSubSink,
    messages: PubSubStream,
    /// After a refusal channels are asked for one by one: a user may be allowed some of them.
    batch: usize,
    /// Channels that the server refused by themselves; asked for again at the next ping.
    refused: Vec<Channel>,
    idle_since: Option<Instant>,
    was_confirmed: bool,
}

/// A request under way: `None` when the server did not answer in time.
type Pending = Pin<Box<dyn Future<Output = Option<Result<(), RedisError>>> + Send>>;

/// What a request was for.
enum Purpose {
    Join(Vec<Channel>),
    Leave,
    Ping,
}

/// What happens next.
enum Event {
    Answered(Option<Result<(), RedisError>>),
    Message(Msg),
    Closed,
    Changed,
    PingIsDue,
}

impl<'a> Session<'a> {
    fn new(target: &'a Target, register: &'a Register, pubsub: PubSub) -> Self {
        let (sink, messages) = pubsub.split();
        Session {
            target,
            register,
            sink,
            messages,
            batch: BATCH,
            refused: Vec::new(),
            idle_since: None,
            was_confirmed: false,
        }
    }

    /// Returns when the connection is of no use any more.
    async fn serve(&mut self) {
        let mut ping_at = self.next_ping();
        let mut ping_is_due = false;
        let mut under_way: Option<(Purpose, Pending)> = None;
        loop {
            if self.register.is_closed() {
                return;
            }
            if under_way.is_none() {
                under_way = if ping_is_due {
                    ping_is_due = false;
                    ping_at = self.next_ping();
                    Some((Purpose::Ping, self.ping()))
                } else {
                    self.next_request()
                };
            }
            let pending = under_way.as_mut().map(|(_, pending)| pending);
            match self.next_event(pending, ping_at).await {
                Event::Answered(answer) => {
                    let Some((purpose, _)) = under_way.take() else {
                        continue;
                    };
                    if !self.settle(purpose, answer) {
                        return;
                    }
                }
                Event::Message(message) => self.pass_on(&message),
                Event::Closed => return,
                Event::Changed => {}
                Event::PingIsDue => {
                    if self.has_lingered() {
                        return;
                    }
                    self.register.recall(std::mem::take(&mut self.refused));
                    ping_is_due = true;
                }
            }
        }
    }

    fn next_ping(&self) -> Instant {
        timer::now() + self.target.config().ping_interval
    }

    /// Polls everything in a fixed order: answers first, lest a flood of messages should keep one from being seen.
    async fn next_event(&mut self, mut pending: Option<&mut Pending>, ping_at: Instant) -> Event {
        let mut changed = pin!(self.register.changed());
        let mut ping = pin!(timer::sleep_until(ping_at));
        let messages = &mut self.messages;
        poll_fn(|cx| {
            if let Some(pending) = &mut pending
                && let Poll::Ready(answer) = pending.as_mut().poll(cx)
            {
                return Poll::Ready(Event::Answered(answer));
            }
            if let Poll::Ready(message) = Pin::new(&mut *messages).poll_next(cx) {
                return Poll::Ready(message.map_or(Event::Closed, Event::Message));
            }
            if changed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Changed);
            }
            // While a request is under way it is a probe itself.
            if pending.is_none() && ping.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::PingIsDue);
            }
            Poll::Pending
        })
        .await
    }

    fn next_request(&mut self) -> Option<(Purpose, Pending)> {
        let mut sink = self.sink.clone();
        match self.register.next_order(self.batch) {
            Some(Order::Subscribe(channels)) => {
                let names = channels.clone();
                let request = async move { sink.subscribe(texts(&names)).await };
                Some((Purpose::Join(channels), self.bounded(request)))
            }
            Some(Order::Unsubscribe(channels)) => {
                let request = async move { sink.unsubscribe(texts(&channels)).await };
                Some((Purpose::Leave, self.bounded(request)))
            }
            None => {
                self.batch = BATCH;
                None
            }
        }
    }

    fn ping(&self) -> Pending {
        let mut sink = self.sink.clone();
        self.bounded(async move { sink.ping::<Value>().await.map(drop) })
    }

    fn bounded(
        &self,
        request: impl Future<Output = Result<(), RedisError>> + Send + 'static,
    ) -> Pending {
        let deadline = timer::now() + self.target.config().call_timeout;
        Box::pin(timer::by(deadline, request))
    }

    /// Whether the connection is still of use after this answer.
    fn settle(&mut self, purpose: Purpose, answer: Option<Result<(), RedisError>>) -> bool {
        let Some(answer) = answer else {
            return false;
        };
        match (purpose, answer) {
            (Purpose::Join(channels), Ok(())) => {
                self.was_confirmed = true;
                self.register.confirmed(&channels);
                true
            }
            (Purpose::Leave | Purpose::Ping, Ok(())) => true,
            // A refusal is an answer too. Anything else means that the connection is broken.
            (_, Err(error)) if error.code().is_none() => false,
            (Purpose::Join(channels), Err(_)) => {
                self.register.refused(&channels);
                if channels.len() == 1 {
                    self.register.put_off(&channels);
                    self.refused.extend(channels);
                }
                self.batch = 1;
                true
            }
            (Purpose::Ping, Err(_)) => true,
            (Purpose::Leave, Err(_)) => false,
        }
    }

    fn pass_on(&self, message: &Msg) {
        let wake = match message.get_payload_bytes() {
            b"1" => Wake::ReadersMayEnter,
            _ => Wake::Unlocked,
        };
        self.register.wake(message.get_channel_name(), wake);
    }

    /// Whether nobody has listened for long enough.
    fn has_lingered(&mut self) -> bool {
        if !self.register.is_idle() {
            self.idle_since = None;
            return false;
        }
        let now = timer::now();
        let since = *self.idle_since.get_or_insert(now);
        since + self.target.config().linger <= now
    }
}

fn texts(channels: &[Channel]) -> Vec<&str> {
    channels.iter().map(|channel| &**channel).collect()
}
