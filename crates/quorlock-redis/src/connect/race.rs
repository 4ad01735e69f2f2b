//! Races the addresses of a host.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crate::timer;

/// How long an address is tried before the next one is tried in parallel (RFC 8305, 5 and 8: Connection Attempt Delay).
const HEAD_START: Duration = Duration::from_millis(250);

/// Orders addresses for the race: as the system returned them, but with alternating families. A network that drops
/// all packets of one family then costs one head start.
pub(super) fn by_turns(addresses: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses: Vec<_> = addresses.collect();
    let mut place = 1;
    while let Some(before) = addresses.get(place - 1).map(SocketAddr::is_ipv4) {
        let rest = addresses.get(place..).unwrap_or_default();
        let Some(other) = rest.iter().position(|next| next.is_ipv4() != before) else {
            break;
        };
        if let Some(until) = addresses.get_mut(place..=place + other) {
            until.rotate_right(1);
        }
        place += 1;
    }
    addresses
}

/// Connects to one of the addresses of a host: the first connection that succeeds wins.
///
/// # Errors
/// The error of the last attempt, if all have failed.
pub(super) async fn connected<A, S, F>(addresses: Vec<A>, connect: impl Fn(A) -> F) -> io::Result<S>
where
    F: Future<Output = io::Result<S>>,
{
    let none = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    race(addresses, none, connect).await
}

/// Races attempts: the first one that succeeds wins, and the others are dropped. The next attempt begins when one
/// has failed, or in parallel after the head start of the last one.
///
/// # Errors
/// The error of the last attempt, if all have failed; `error` if there is no address.
pub(crate) async fn race<A, S, E, F>(
    addresses: Vec<A>,
    mut error: E,
    connect: impl Fn(A) -> F,
) -> Result<S, E>
where
    F: Future<Output = Result<S, E>>,
{
    let mut addresses = addresses.into_iter();
    let mut attempts: Vec<Pin<Box<F>>> = Vec::new();
    loop {
        match addresses.next() {
            Some(address) => attempts.push(Box::pin(connect(address))),
            None if attempts.is_empty() => return Err(error),
            None => {}
        }
        let mut head_start = pin!(timer::sleep_until(timer::now() + HEAD_START));
        let connected = poll_fn(|cx| {
            let under_way = attempts.len();
            let mut connected = None;
            attempts.retain_mut(|attempt| {
                if connected.is_some() {
                    return false;
                }
                match attempt.as_mut().poll(cx) {
                    Poll::Pending => return true,
                    Poll::Ready(Ok(stream)) => connected = Some(stream),
                    Poll::Ready(Err(why)) => error = why,
                }
                false
            });
            let has_ended = attempts.len() < under_way;
            let is_next_due = 0 < addresses.len() && head_start.as_mut().poll(cx).is_ready();
            if has_ended || is_next_due {
                return Poll::Ready(connected);
            }
            Poll::Pending
        });
        if let Some(stream) = connected.await {
            return Ok(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The outcome of an attempt to connect to an address, and the time it takes.
    #[derive(Clone, Copy)]
    enum Fate {
        Connects(u64),
        Fails(u64),
        Swallows,
    }

    /// Returns which address won and when, and at which time each address was tried.
    async fn raced(fates: &[Fate]) -> (Result<usize, String>, Duration, Vec<(usize, Duration)>) {
        let began = timer::now();
        let tried = RefCell::new(Vec::new());
        let won = connected((0..fates.len()).collect(), |address| {
            tried.borrow_mut().push((address, timer::now() - began));
            async move {
                match fates[address] {
                    Fate::Connects(after) => {
                        timer::sleep_until(timer::now() + at(after)).await;
                        Ok(address)
                    }
                    Fate::Fails(after) => {
                        timer::sleep_until(timer::now() + at(after)).await;
                        Err(io::Error::other(format!("{address} refuses")))
                    }
                    Fate::Swallows => std::future::pending().await,
                }
            }
        })
        .await;
        let won = won.map_err(|error| error.to_string());
        (won, timer::now() - began, tried.into_inner())
    }

    use Fate::{Connects, Fails, Swallows};

    #[tokio::test(start_paused = true)]
    async fn an_address_that_swallows_packets_costs_a_head_start() {
        let (won, took, tried) = raced(&[Swallows, Connects(10), Connects(0)]).await;
        assert_eq!((won, took), (Ok(1), at(260)));
        assert_eq!(tried, [(0, at(0)), (1, at(250))]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_failure_the_next_address_is_tried_at_once() {
        let (won, took, tried) = raced(&[Fails(5), Fails(0), Connects(1)]).await;
        assert_eq!((won, took), (Ok(2), at(6)));
        assert_eq!(tried, [(0, at(0)), (1, at(5)), (2, at(5))]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_address_may_still_win() {
        let (won, took, tried) = raced(&[Connects(300), Swallows, Connects(0)]).await;
        assert_eq!((won, took), (Ok(0), at(300)));
        assert_eq!(tried, [(0, at(0)), (1, at(250))]);
        let (won, _, _) = raced(&[Connects(251), Connects(900)]).await;
        assert_eq!(won, Ok(0));
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_fail_the_last_says_why() {
        let (won, took, tried) = raced(&[Fails(400), Fails(10), Fails(0)]).await;
        assert_eq!((won, took), (Err("0 refuses".to_owned()), at(400)));
        assert_eq!(tried, [(0, at(0)), (1, at(250)), (2, at(260))]);
        let (won, took, _) = raced(&[]).await;
        assert_eq!((won.is_err(), took), (true, at(0)));
    }

    #[test]
    fn families_take_turns_in_the_order_of_the_system() {
        let four = |last| SocketAddr::from(([10, 0, 0, last], 1));
        let six = |last| SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, last], 1));
        let order = |addresses: &[SocketAddr]| by_turns(addresses.iter().copied());
        assert_eq!(
            order(&[six(1), six(2), six(3), four(1), four(2)]),
            [six(1), four(1), six(2), four(2), six(3)]
        );
        assert_eq!(
            order(&[four(1), four(2), six(1), four(3)]),
            [four(1), six(1), four(2), four(3)]
        );
        assert_eq!(order(&[four(1), four(2)]), [four(1), four(2)]);
        assert_eq!(order(&[]), []);
    }
}
