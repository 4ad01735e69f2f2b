//! Conditions that faults wait for: messages, and clients in a role.

use crate::world::id::{FaultId, Id, Seat};
use quorlock_sim_plan::fault::{AfterMessage, ClientTarget, MessageKind, Towards};

/// The faults that wait for a condition.
#[derive(Debug, Default)]
pub(crate) struct Triggers {
    messages: Vec<ExpectedMessage>,
    /// Faults that are due but wait until a client has their role.
    roles: Vec<(FaultId, ClientTarget)>,
}

/// A message that a fault waits for.
#[derive(Clone, Copy, Debug)]
struct ExpectedMessage {
    fault: FaultId,
    after: AfterMessage,
    /// How many such messages must still pass before the fault begins.
    left: u32,
}

/// A message that passes between a client and a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    pub at: u64,
    pub message: MessageKind,
    pub(crate) towards: Towards,
    pub seat: Seat,
}

impl Triggers {
    pub(crate) fn await_message(&mut self, fault: FaultId, after: AfterMessage) {
        let left = after.nth;
        self.messages.push(ExpectedMessage { fault, after, left });
    }

    pub(crate) fn await_role(&mut self, fault: FaultId, role: ClientTarget) {
        self.roles.push((fault, role));
    }

    #[inline]
    pub(crate) fn awaits_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    #[inline]
    pub(crate) fn awaits_roles(&self) -> bool {
        !self.roles.is_empty()
    }

    /// Counts a message of a client. `is_meant` returns whether a target refers to that client. Returns the faults
    /// that begin after the message, each with its time.
    pub(crate) fn pass(
        &mut self,
        passing: Passing,
        is_meant: impl Fn(ClientTarget) -> bool,
    ) -> Vec<(u64, FaultId)> {
        let mut due = Vec::new();
        self.messages.retain_mut(|expected| {
            let after = &expected.after;
            let is_it = after.message == passing.message
                && after.towards == passing.towards
                && after.since.as_nanos() <= passing.at
                && after.node.is_none_or(|node| node == passing.seat.get())
                && after.client.is_none_or(&is_meant);
            expected.left -= u32::from(is_it);
            if expected.left == 0 {
                due.push((passing.at + after.delay.as_nanos(), expected.fault));
            }
            0 < expected.left
        });
        due
    }

    /// Takes the faults whose role a client has now.
    pub(crate) fn take_filled(&mut self, is_filled: impl Fn(ClientTarget) -> bool) -> Vec<FaultId> {
        let (filled, empty): (Vec<_>, Vec<_>) =
            self.roles.drain(..).partition(|(_, role)| is_filled(*role));
        self.roles = empty;
        filled.into_iter().map(|(fault, _)| fault).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_plan::time::SimTime;

    #[test]
    fn the_nth_message_of_a_kind_on_the_way_that_is_meant_is_due_once() {
        let mut triggers = Triggers::default();
        let after = AfterMessage {
            since: SimTime::nanos(10),
            message: MessageKind::Release,
            towards: Towards::Node,
            client: Some(ClientTarget::Client(0)),
            node: Some(2),
            nth: 2,
            delay: SimTime::nanos(7),
        };
        triggers.await_message(FaultId::new(3), after);
        let passing = Passing {
            at: 20,
            message: MessageKind::Release,
            towards: Towards::Node,
            seat: Seat::new(2),
        };
        let of_client =
            |client: u16| move |target: ClientTarget| target == ClientTarget::Client(client);
        let others = [
            (Passing { at: 9, ..passing }, 0),
            (passing, 1),
            (
                Passing {
                    message: MessageKind::Acquire,
                    ..passing
                },
                0,
            ),
            (
                Passing {
                    towards: Towards::Client,
                    ..passing
                },
                0,
            ),
            (
                Passing {
                    seat: Seat::new(1),
                    ..passing
                },
                0,
            ),
        ];
        for (other, client) in others {
            assert_eq!(triggers.pass(other, of_client(client)), []);
        }
        assert_eq!(triggers.pass(passing, of_client(0)), []);
        assert_eq!(
            triggers.pass(passing, of_client(0)),
            [(27, FaultId::new(3))]
        );
        assert!(!triggers.awaits_messages());
    }
}
