//! Layouts: which members a lock has, and how many of them must grant.

use quorlock::Name;

use super::client::LockClient;
use super::member::Member;
use quorlock_sim_plan::LockKind;
use quorlock_sim_plan::variant::Flaw;
use quorlock_sim_world::history::NameId;
use quorlock_sim_world::world::id::{Id, Seat};
use quorlock_sim_world::world::with;

/// The members of a lock. Each member is one name on one node.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) names: Vec<Name>,
    pub(super) members: Vec<Member>,
    /// The number of members that must grant, for each name.
    needed: Vec<usize>,
}

impl Layout {
    pub(super) fn new(client: &LockClient, names: &[String]) -> Self {
        let mut layout = Layout {
            names: Vec::new(),
            members: Vec::new(),
            needed: Vec::new(),
        };
        for (text, group) in names.iter().zip(0..) {
            let place = with(|world| world.history.name(text));
            let seats = seats(client, place);
            layout.needed.push(needed(client, seats.len()));
            let name = Name::new(text).expect("the names of a lock");
            for seat in seats {
                layout.members.push(Member {
                    group,
                    name: name.clone(),
                    node: client.transport(Seat::new(seat)),
                });
            }
            layout.names.push(name);
        }
        layout
    }

    /// Returns one of the members as a separate lock.
    pub(super) fn part(&self, member: usize) -> Option<Layout> {
        let member = self.members.get(member)?;
        Some(Layout {
            names: vec![member.name.clone()],
            members: vec![Member::new(member.name.clone(), member.node.clone())],
            needed: vec![1],
        })
    }

    /// Returns the names, for use in errors.
    pub(super) fn text(&self) -> String {
        let names: Vec<_> = self.names.iter().map(Name::text).collect();
        names.join(", ")
    }

    /// Returns whether the members for which `says_yes` holds are a threshold of every name.
    pub(super) fn is_quorum(&self, says_yes: impl Fn(usize) -> bool) -> bool {
        let mut counts = vec![0; self.needed.len()];
        for (member, index) in self.members.iter().zip(0..) {
            if let Some(count) = counts.get_mut(member.group) {
                *count += usize::from(says_yes(index));
            }
        }
        counts
            .iter()
            .zip(&self.needed)
            .all(|(yes, needed)| needed <= yes)
    }

    /// Given one value for each member, returns the largest value that a threshold of members reaches for every name.
    pub(super) fn threshold_th<T: Ord + Copy>(&self, values: &[Option<T>]) -> Option<T> {
        let groups = 0..self.needed.len();
        let of_group = groups.map(|group| {
            let pairs = self.members.iter().zip(values);
            let own = pairs.filter(|(member, _)| member.group == group);
            let mut own: Vec<T> = own.filter_map(|(_, value)| *value).collect();
            // The order is descending, so that the threshold-th term ends the hold. If A holds 1, 2 and 3 of 5, B can
            // win 3, 4 and 5 as soon as A's claim on 3 has expired.
            own.sort_unstable_by(|a, b| b.cmp(a));
            let nth = self.needed.get(group)?.checked_sub(1)?;
            own.get(nth).copied()
        });
        of_group.collect::<Option<Vec<T>>>()?.into_iter().min()
    }
}

/// Returns the nodes that are members for a name.
fn seats(client: &LockClient, name: NameId) -> Vec<u16> {
    let nodes = client.plan.nodes.count;
    let known = if client.has(Flaw::MixedMembership) && client.who.client.get() % 2 == 1 {
        nodes.min(3)
    } else {
        nodes
    };
    match client.plan.lock {
        LockKind::Single => vec![0],
        LockKind::Multi => vec![name.0 % nodes],
        LockKind::Redlock => (0..known).collect(),
    }
}

fn needed(client: &LockClient, of: usize) -> usize {
    if client.has(Flaw::HalfIsEnough) {
        (of / 2).max(1)
    } else {
        // Any two majorities share a member. With 2 of 4, A could hold 1 and 2 while B holds 3 and 4.
        of / 2 + 1
    }
}
