//! Elections without servers: the tests decide what the sentinels see, and check what they do.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::world::id::Id;
use quorlock_sim_plan::time::SimTime;

const MILLI: u64 = 1_000_000;

fn id(number: u16) -> NodeId {
    NodeId::new(number)
}

/// A group of the servers 0 to 2 and the sentinels 3 to 5. The primary is server 0.
struct Scene {
    group: ElectionGroup,
    asleep: BTreeSet<NodeId>,
    roles: BTreeMap<NodeId, Role>,
    now: u64,
}

impl View for Scene {
    fn is_awake(&self, member: NodeId) -> bool {
        !self.asleep.contains(&member)
    }

    fn role(&self, server: NodeId) -> Role {
        self.roles.get(&server).copied().unwrap_or(Role::Sentinel)
    }

    fn flows(&self, primary: NodeId, replica: NodeId) -> bool {
        self.role(replica) == Role::ReplicaOf(primary)
    }
}

impl Scene {
    fn new() -> Self {
        let rules = Sentinels {
            down_after: SimTime::millis(50),
            election: SimTime::millis(10),
            gossip: SimTime::millis(10),
            demotion: SimTime::millis(40),
            ..Sentinels::default()
        };
        let servers = [0, 1, 2].map(id).to_vec();
        let roles = BTreeMap::from([
            (id(0), Role::Primary),
            (id(1), Role::ReplicaOf(id(0))),
            (id(2), Role::ReplicaOf(id(0))),
        ]);
        Scene {
            group: ElectionGroup::new(&rules, servers, [3, 4, 5].map(id).to_vec()),
            asleep: BTreeSet::new(),
            roles,
            now: 0,
        }
    }

    /// Lets this many milliseconds pass and carries out promotions. Returns what was done, each with its time in
    /// milliseconds.
    fn pass(&mut self, millis: u64) -> Vec<(u64, Deed)> {
        let mut done = Vec::new();
        let ends = self.now + millis * MILLI;
        while self.now < ends {
            self.now += 5 * MILLI;
            let mut group = std::mem::replace(
                &mut self.group,
                ElectionGroup::new(&Sentinels::default(), vec![id(0)], Vec::new()),
            );
            for deed in group.look(self.now, self) {
                done.push((self.now / MILLI, deed));
                match deed {
                    Deed::Promote { leader, primary } => {
                        let candidates = group.candidates(leader, primary, self);
                        let Some(new) = candidates.first().copied() else {
                            continue;
                        };
                        self.roles.insert(new, Role::Primary);
                        for other in candidates.into_iter().filter(|other| *other != new) {
                            self.roles.insert(other, Role::ReplicaOf(new));
                        }
                        group.promoted(leader, new, self.now);
                    }
                    Deed::Demote { server, primary } => {
                        self.roles.insert(server, Role::ReplicaOf(primary));
                    }
                    Deed::Name { .. } | Deed::Resync { .. } => {}
                }
            }
            self.group = group;
        }
        done
    }

    fn separate(&mut self, members: &[u16]) {
        self.group.separate(Apart {
            by: FaultId::new(0),
            members: members.iter().copied().map(id).collect(),
            clients: Some(Vec::new()),
        });
    }
}

fn promotions(done: &[(u64, Deed)]) -> Vec<u64> {
    let promotions = done
        .iter()
        .filter(|(_, deed)| matches!(deed, Deed::Promote { .. }));
    promotions.map(|(at, _)| *at).collect()
}

#[test]
fn nothing_is_done_while_nothing_is_wrong() {
    assert_eq!(Scene::new().pass(500), []);
}

#[test]
fn a_primary_that_is_gone_is_replaced_and_made_a_replica_when_it_is_seen_again() {
    let mut scene = Scene::new();
    scene.asleep.insert(id(0));
    let done = scene.pass(100);
    // The primary was last heard from at the beginning: it is down after 50 ms, and its successor is elected 10 ms
    // later.
    assert_eq!(promotions(&done), [60]);
    let named = done.iter().filter_map(|(at, deed)| match deed {
        Deed::Name {
            sentinel,
            primary,
            epoch,
        } => Some((*at, *sentinel, *primary, *epoch)),
        _ => None,
    });
    let named: Vec<_> = named.collect();
    let switch = |sentinel| (70, id(sentinel), id(1), 2);
    assert_eq!(named, [3, 4, 5].map(switch));
    scene.asleep.clear();
    let done = scene.pass(100);
    let demotion = Deed::Demote {
        server: id(0),
        primary: id(1),
    };
    assert_eq!(done, [(145, demotion)]);
}

#[test]
fn a_primary_that_is_heard_again_in_time_stays() {
    let mut scene = Scene::new();
    scene.asleep.insert(id(0));
    scene.pass(45);
    scene.asleep.clear();
    assert_eq!(scene.pass(300), []);
}

#[test]
fn without_a_majority_of_sentinels_there_is_no_election() {
    let mut scene = Scene::new();
    scene.asleep.extend([id(0), id(4), id(5)]);
    assert_eq!(scene.pass(500), []);
    // When a sentinel returns, its timeouts start over. When they have passed, there is a majority.
    scene.asleep.remove(&id(5));
    assert_eq!(promotions(&scene.pass(200)), [560]);
}

#[test]
fn a_sentinel_on_the_side_of_the_primary_goes_on_naming_it() {
    let mut scene = Scene::new();
    scene.separate(&[0, 3]);
    let done = scene.pass(300);
    assert_eq!(promotions(&done).len(), 1);
    let names = |done: &[(u64, Deed)], of: u16| {
        done.iter()
            .any(|(_, deed)| matches!(deed, Deed::Name { sentinel, .. } if *sentinel == id(of)))
    };
    assert!(names(&done, 4) && names(&done, 5) && !names(&done, 3));
    assert_eq!(scene.role(id(0)), Role::Primary);
    scene.group.unite(FaultId::new(0));
    let done = scene.pass(100);
    assert!(names(&done, 3));
    assert_eq!(scene.role(id(0)), Role::ReplicaOf(id(1)));
}

#[test]
fn a_stale_sentinel_elects_nobody_and_is_not_needed() {
    let mut scene = Scene::new();
    scene.separate(&[3]);
    assert_eq!(scene.pass(300), [], "it alone takes all servers for down");
    scene.asleep.insert(id(0));
    assert_eq!(promotions(&scene.pass(200)).len(), 1);
}

#[test]
fn an_order_needs_no_primary_that_is_down() {
    let mut scene = Scene::new();
    let mut group = std::mem::replace(
        &mut scene.group,
        ElectionGroup::new(&Sentinels::default(), vec![id(0)], Vec::new()),
    );
    assert!(group.order(0, &scene));
    assert!(!group.order(0, &scene), "one at a time");
    scene.group = group;
    let done = scene.pass(200);
    assert_eq!(promotions(&done), [10]);
    assert_eq!(scene.role(id(0)), Role::ReplicaOf(id(1)));
}
