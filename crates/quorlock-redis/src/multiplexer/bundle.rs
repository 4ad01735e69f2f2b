//! Requests without a script that are sent together: one command checks the fair queues of all of them.
//!
//! ```text
//! HDEL PUBLISH   HDEL PUBLISH  ..   as they come
//! RESTORE  RESTORE  ..              when the bundle is closed: before any other command, or when it is sent
//! EXISTS queue queue  ..
//! INCR  INCR  ..
//! ```
//!
//! What ends a claim may go before what makes one, although it came later: a claim is ended in this way only if the reply to
//! its acquire is there, so its `RESTORE` is in no open bundle.

use redis::Value;

use super::queue::{Call, Deed, Packed};
use super::{MultiplexerState, Passed};
use crate::script::batch::MOST_CLAIMS;

/// The commands of a request without a script, as they are sent.
#[derive(Debug)]
pub(crate) enum Native {
    /// `HDEL` and `PUBLISH`.
    End(Vec<u8>),
    /// `RESTORE`; the argument of `EXISTS`, which begins at `check`; `INCR`, which begins at `draw`.
    Take {
        bytes: Vec<u8>,
        check: usize,
        draw: usize,
    },
}

/// What the open bundle keeps back until it is closed.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    claims: Vec<u8>,
    checks: Vec<u8>,
    draws: Vec<u8>,
    number: usize,
}

impl Native {
    /// The commands of this request alone.
    pub(super) fn packed(self) -> Packed {
        match self {
            Native::End(bytes) => Packed { bytes, replies: 2 },
            Native::Take { bytes, check, draw } => {
                let [claim, check, draw] = pieces(&bytes, check, draw);
                let bytes = [claim, exists(1).as_bytes(), check, draw].concat();
                Packed { bytes, replies: 3 }
            }
        }
    }
}

/// Splits the bytes of a [`Native::Take`].
fn pieces(bytes: &[u8], check: usize, draw: usize) -> [&[u8]; 3] {
    let (claim, rest) = bytes.split_at(check);
    let (check, draw) = rest.split_at(draw - check);
    [claim, check, draw]
}

/// The beginning of `EXISTS` with this number of keys.
fn exists(keys: usize) -> String {
    format!("*{}\r\n$6\r\nEXISTS\r\n", keys + 1)
}

/// The largest number of requests of a bundle: each gets its reply when all have been executed.
const MOST_REQUESTS: usize = 2 * MOST_CLAIMS;

impl MultiplexerState {
    /// Writes the commands of a request without a script. Its place in `waiting` is taken under the same lock.
    pub(super) fn write_native(&mut self, native: Native) {
        if !self.queue.is_empty() {
            self.queue.push_commands(native.packed());
            return;
        }
        let bundle = self.bundle.get_or_insert_with(|| {
            self.calls.push_back(Call::bundled());
            Bundle::default()
        });
        let Some(call) = self.calls.back_mut() else {
            return;
        };
        match native {
            Native::End(bytes) => {
                call.add(Deed::End, 2);
                self.outbox.extend_from_slice(&bytes);
            }
            Native::Take { bytes, check, draw } => {
                call.add(Deed::Take, if bundle.number == 0 { 3 } else { 2 });
                let [claim, check, draw] = pieces(&bytes, check, draw);
                bundle.claims.extend_from_slice(claim);
                bundle.checks.extend_from_slice(check);
                bundle.draws.extend_from_slice(draw);
                bundle.number += 1;
            }
        }
        if bundle.number == MOST_CLAIMS || call.covers() == MOST_REQUESTS {
            self.close_bundle();
        }
    }

    /// Writes what the open bundle has kept back.
    pub(super) fn close_bundle(&mut self) {
        let Some(bundle) = self.bundle.take() else {
            return;
        };
        let outbox = &mut self.outbox;
        outbox.extend_from_slice(&bundle.claims);
        if 0 < bundle.number {
            outbox.extend_from_slice(exists(bundle.number).as_bytes());
        }
        outbox.extend_from_slice(&bundle.checks);
        outbox.extend_from_slice(&bundle.draws);
    }

    /// Gives each request of a bundle its replies, as if it had been sent alone.
    ///
    /// If a fair lock of one of the names has waiters, or the user may not look at one of the queues, it is not known of which: the
    /// reply to the check is [`Value::Nil`] for each, which then asks for its own.
    pub(super) fn share_out_bundle(&mut self, deeds: &[Deed], value: Value, passed: &mut Passed) {
        let Value::Array(mut values) = value else {
            return;
        };
        let takes = deeds.iter().filter(|deed| **deed == Deed::Take).count();
        let mut drawn = values.split_off(values.len() - takes).into_iter();
        let check = match values.pop_if(|_| 0 < takes) {
            Some(check) if takes == 1 || check == Value::Int(0) => check,
            _ => Value::Nil,
        };
        let mut claims = values.split_off(values.len() - takes).into_iter();
        let mut ended = values.into_iter();
        for (place, deed) in deeds.iter().enumerate() {
            let parts: Vec<Value> = match deed {
                Deed::End => ended.by_ref().take(2).collect(),
                Deed::Take => claims
                    .next()
                    .into_iter()
                    .chain([check.clone()])
                    .chain(drawn.next())
                    .collect(),
            };
            self.settle(place, Ok(Value::Array(parts)), passed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::multiplexer::{Answer, Multiplexer};
    use crate::timer;

    fn send(multiplexer: &Arc<Multiplexer>, native: Native) -> Answer {
        let deadline = timer::now() + Duration::from_secs(2);
        let answer = multiplexer.send_native(native, deadline, || {});
        answer.expect("it is open")
    }

    /// An acquire whose commands are `RESTORE=..`, the check of `..`, and `INCR=..`.
    fn take(name: &str) -> Native {
        let bytes = format!("RESTORE={name};{name};INCR={name};").into_bytes();
        let check = "RESTORE=;".len() + name.len();
        let draw = check + name.len() + 1;
        Native::Take { bytes, check, draw }
    }

    fn end(name: &str) -> Native {
        Native::End(format!("HDEL={name};").into_bytes())
    }

    /// What is written when the driver takes it.
    fn written(multiplexer: &Multiplexer) -> String {
        let mut state = multiplexer.lock();
        state.close_bundle();
        let bytes = std::mem::take(&mut state.outbox);
        String::from_utf8(bytes).expect("text").replace("\r\n", ".")
    }

    /// The server answers with these.
    fn reply(multiplexer: &Multiplexer, values: impl IntoIterator<Item = Value>) {
        let mut passed = Passed::default();
        for value in values {
            assert!(multiplexer.lock().reply(value, &mut passed));
        }
        assert!(passed.unwanted.is_empty());
    }

    fn ints<const N: usize>(values: [i64; N]) -> Value {
        Value::Array(values.map(Value::Int).into())
    }

    #[tokio::test(start_paused = true)]
    async fn acquires_that_are_sent_together_have_one_check() {
        let multiplexer = Multiplexer::new();
        let answers = [take("a"), end("x"), take("b"), end("y")].map(|it| send(&multiplexer, it));
        let expected = "HDEL=x;HDEL=y;RESTORE=a;RESTORE=b;*3.$6.EXISTS.a;b;INCR=a;INCR=b;";
        assert_eq!(written(&multiplexer), expected);
        reply(&multiplexer, [1, 2, 3, 4, 5, 6, 0, 7, 8].map(Value::Int));
        let expected = [ints([5, 0, 7]), ints([1, 2]), ints([6, 0, 8]), ints([3, 4])];
        for (answer, expected) in answers.into_iter().zip(expected) {
            assert_eq!(answer.await, Ok(expected));
        }
        assert!(multiplexer.lock().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_of_several_that_is_no_zero_is_not_known_for_any() {
        let multiplexer = Multiplexer::new();
        for together in [1, 2] {
            let answers: Vec<_> = (0..together)
                .map(|_| send(&multiplexer, take("a")))
                .collect();
            written(&multiplexer);
            reply(&multiplexer, (0..=2 * together).map(Value::Int));
            for (at, answer) in (0..).zip(answers) {
                let check = match together {
                    1 => Value::Int(1),
                    _ => Value::Nil,
                };
                let parts = [Value::Int(at), check, Value::Int(together + 1 + at)];
                assert_eq!(answer.await, Ok(Value::Array(parts.into())));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn any_other_command_is_sent_behind_the_bundle() {
        let multiplexer = Multiplexer::new();
        let before = send(&multiplexer, take("a"));
        let deadline = timer::now() + Duration::from_secs(2);
        let ping = multiplexer.send(&redis::cmd("PING"), deadline, || {});
        let behind = send(&multiplexer, end("a"));
        let expected = "RESTORE=a;*2.$6.EXISTS.a;INCR=a;*1.$4.PING.HDEL=a;";
        assert_eq!(written(&multiplexer), expected);
        reply(&multiplexer, (0..6).map(Value::Int));
        assert_eq!(before.await, Ok(ints([0, 1, 2])));
        assert_eq!(ping.expect("it is open").await, Ok(Value::Int(3)));
        assert_eq!(behind.await, Ok(ints([4, 5])));
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_does_not_wait_for_thousands_of_others() {
        let multiplexer = Multiplexer::new();
        let mut answers: Vec<_> = (0..1_000).map(|_| send(&multiplexer, end("a"))).collect();
        written(&multiplexer);
        reply(&multiplexer, (0..2 * MOST_REQUESTS as i64).map(Value::Int));
        for (at, answer) in (0..).zip(answers.drain(..MOST_REQUESTS)) {
            assert_eq!(answer.await, Ok(ints([2 * at, 2 * at + 1])));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_bundle_is_closed_and_what_is_dropped_leaves_its_replies_to_no_other() {
        let multiplexer = Multiplexer::new();
        let mut answers: Vec<_> = (0..=MOST_CLAIMS)
            .map(|_| send(&multiplexer, take("a")))
            .collect();
        drop(answers.remove(0));
        let text = written(&multiplexer);
        assert_eq!(text.matches("EXISTS").count(), 2);
        let claims = std::iter::repeat_n(Value::Okay, MOST_CLAIMS);
        let tokens = (1..=MOST_CLAIMS as i64).map(Value::Int);
        let mut passed = Passed::default();
        for value in claims.chain([Value::Int(0)]).chain(tokens).chain([
            Value::Okay,
            Value::Int(0),
            Value::Int(99),
        ]) {
            assert!(multiplexer.lock().reply(value, &mut passed));
        }
        let last = answers.pop().expect("the one in the second bundle");
        let grant = |token| Value::Array(vec![Value::Okay, Value::Int(0), Value::Int(token)]);
        assert_eq!(last.await, Ok(grant(99)));
        for (token, answer) in (2..).zip(answers) {
            assert_eq!(answer.await, Ok(grant(token)));
        }
    }
}
