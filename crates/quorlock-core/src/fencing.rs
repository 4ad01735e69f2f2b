//! Tokens by which a resource distinguishes a newer holder from an older one.
//!
//! A node hands out `max(stored + 1, floor)` with every fresh grant, so it hands out each value once. The floor is the
//! client's wall clock in milliseconds. Nodes that see no other traffic therefore hand out the *same* value, and the
//! quorum is usually unanimous: that value is the token, at no further cost. Where the members differ, the holder
//! proposes a value above all of theirs, and a threshold of them must take it. Any two quorums share a node. Tokens
//! are therefore unique and ordered, whatever clocks and pauses do, as long as every quorum has a counter that took
//! the last value. (A lost counter counts like a lost claim: a quorum of exactly the threshold tolerates none. After
//! such a loss the order depends on the floors.)
//!
//! (The plain maximum of the counters is not a token: nodes at 5, 1, 1 give 6 to the first quorum and 3 to the second.)

use std::fmt;

use crate::quorum::{MemberId, Members};
use crate::time::WallMillis;

/// A number that grows with every new hold of a name. A resource rejects smaller numbers than it has seen.
///
/// The value is below 2^53, so that languages whose only numbers are floating-point can compare it exactly, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Token(pub u64);

impl Token {
    /// Returns the next number.
    #[must_use]
    pub(crate) fn next(self) -> Self {
        Token(self.0.saturating_add(1))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {}", self.0)
    }
}

/// How a node chooses the token of a grant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// A new hold: the node hands out `max(stored + 1, floor)`. It first clamps the floor to its own clock +-
    /// `slack_millis`, so that a client with a wild clock cannot use up the numbers.
    Mint {
        /// The client's wall clock.
        floor: WallMillis,
        /// How far the floor may be from the node's clock, in milliseconds: a quarter of the longest lease.
        slack_millis: u64,
    },
    /// A hold that already has its token: the node stores it if it is larger than the stored one.
    Carry(Token),
}

/// Returns the value that a node hands out for a grant.
#[must_use]
pub fn mint(stored: Option<Token>, fence: Fence, node_clock: WallMillis) -> Token {
    match fence {
        Fence::Mint {
            floor,
            slack_millis,
        } => {
            let floor = floor.clamp(
                node_clock.minus(slack_millis),
                node_clock.plus(slack_millis),
            );
            let next = stored.map_or(0, |token| token.0.saturating_add(1));
            Token(next.max(floor.0))
        }
        Fence::Carry(token) => stored.map_or(token, |stored| stored.max(token)),
    }
}

/// The comparison of the values that the members of one quorum handed out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Agreement {
    /// All values are equal: this is the token.
    Unanimous(Token),
    /// The values differ: propose this value (one above the largest) to the members that granted.
    Propose(Token),
}

/// Compares the values that the members of one group handed out; `None` for a member that did not grant.
///
/// # Panics
/// Panics if no member granted, because then there is no quorum.
#[must_use]
pub fn agreement(values: impl IntoIterator<Item = Option<Token>>) -> Agreement {
    let mut granted = values.into_iter().flatten();
    let first = granted.next().expect("BUG: a won group has a grant");
    // Raising the token: nodes have 5, 1 and 1. A gets 6 and 2 from nodes 1 and 2; B, which comes later, gets 3 and 2
    // from nodes 2 and 3. With the largest value as the token A would have 6 and B 3, and a store would reject the
    // newer holder. A therefore proposes 7, node 2 stores it, and B is handed out 8.
    let (least, most) = granted.fold((first, first), |(least, most), token| {
        (least.min(token), most.max(token))
    });
    if least == most {
        Agreement::Unanimous(first)
    } else {
        Agreement::Propose(Token(most.0.saturating_add(1)))
    }
}

/// The tokens of a hold, one for each group (each name), either unanimous or still to be raised.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tokens {
    groups: Vec<Agreement>,
}

impl Tokens {
    /// Compares the values that each member handed out, group by group; `None` for a member that did not grant.
    #[must_use]
    pub fn of(members: &Members, handed_out: impl Fn(MemberId) -> Option<Token>) -> Self {
        let groups = members
            .groups()
            .map(|group| agreement(group.members().map(&handed_out)))
            .collect();
        Tokens { groups }
    }

    /// Returns whether the tokens of all groups are settled.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.groups
            .iter()
            .all(|group| matches!(group, Agreement::Unanimous(_)))
    }

    /// Returns whether the token of the group is settled.
    #[must_use]
    pub fn is_group_settled(&self, group: usize) -> bool {
        matches!(self.groups.get(group), Some(Agreement::Unanimous(_)))
    }

    /// Returns the token of a group, settled or proposed.
    #[must_use]
    pub fn token(&self, group: usize) -> Token {
        match self.groups.get(group) {
            Some(Agreement::Unanimous(token) | Agreement::Propose(token)) => *token,
            None => Token::default(),
        }
    }

    /// Settles the group's token at the largest value that its members have stored. Used where the members hand out no
    /// token and only report the stored one, as for readers.
    ///
    /// A quorum of readers and a quorum of writers share a member, so this value is at least the token of every earlier
    /// writer.
    pub fn settle_at_largest(&mut self, group: usize) {
        if let Some(agreement) = self.groups.get_mut(group)
            && let Agreement::Propose(token) = *agreement
        {
            *agreement = Agreement::Unanimous(Token(token.0.saturating_sub(1)));
        }
    }

    /// Settles the group's token at the proposed value, after a threshold of its members took it.
    pub fn settle(&mut self, group: usize) {
        if let Some(agreement) = self.groups.get_mut(group)
            && let Agreement::Propose(token) = *agreement
        {
            *agreement = Agreement::Unanimous(token);
        }
    }

    /// Raises the next proposal above `stored`, which a member of the group already stores.
    pub fn outbid(&mut self, group: usize, stored: Token) {
        if let Some(Agreement::Propose(token)) = self.groups.get_mut(group) {
            *token = (*token).max(Token(stored.0.saturating_add(1)));
        }
    }
}

/// Returns whether a member took a proposal. It must store exactly that value, and its reply must show that the
/// claim is still the caller's.
///
/// It stores a larger value only if another owner was granted the name there in between, or proposed a larger one.
#[must_use]
pub fn took_proposal(stored: Token, proposal: Token) -> bool {
    stored == proposal
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLACK: u64 = 15_000;

    fn mint_at(stored: Option<u64>, floor: u64, clock: u64) -> u64 {
        let fence = Fence::Mint {
            floor: WallMillis(floor),
            slack_millis: SLACK,
        };
        mint(stored.map(Token), fence, WallMillis(clock)).0
    }

    #[test]
    fn a_fresh_node_hands_out_the_floor() {
        assert_eq!(mint_at(None, 1_000_000, 1_000_500), 1_000_000);
    }

    #[test]
    fn a_node_never_hands_out_a_value_twice() {
        for stored in [1, 999_999, 1_000_000, 2_000_000] {
            assert!(mint_at(Some(stored), 1_000_000, 1_000_000) > stored);
        }
    }

    #[test]
    fn a_wild_floor_is_clamped_to_the_nodes_clock() {
        assert_eq!(mint_at(None, u64::MAX, 1_000_000), 1_015_000);
        assert_eq!(mint_at(None, 0, 1_000_000), 985_000);
    }

    #[test]
    fn carrying_keeps_the_larger() {
        let at = WallMillis(0);
        assert_eq!(mint(None, Fence::Carry(Token(7)), at), Token(7));
        assert_eq!(mint(Some(Token(9)), Fence::Carry(Token(7)), at), Token(9));
        assert_eq!(mint(Some(Token(5)), Fence::Carry(Token(7)), at), Token(7));
    }

    #[test]
    fn members_that_agree_give_the_token_others_a_proposal_above_all() {
        let values = |v: &[u64]| agreement(v.iter().map(|v| Some(Token(*v))).chain([None]));
        assert_eq!(values(&[5, 5, 5]), Agreement::Unanimous(Token(5)));
        assert_eq!(values(&[5, 1, 1]), Agreement::Propose(Token(6)));
    }

    /// Nodes at 5, 1, 1. The plain maximum gives 6 to the quorum {0, 1} and then 3 to the quorum {1, 2}. With the raise
    /// the second quorum shares node 1, which then stores 7.
    #[test]
    fn two_quorums_in_a_row_get_growing_tokens_from_uneven_counters() {
        let mut stored = [5u64, 1, 1];
        let mut last = 0;
        for quorum in [[0, 1], [1, 2], [0, 2], [1, 2], [0, 1]] {
            for node in quorum {
                stored[node] += 1;
            }
            let token = match agreement(quorum.map(|n| Some(Token(stored[n])))) {
                Agreement::Unanimous(token) => token,
                Agreement::Propose(token) => {
                    for node in quorum {
                        stored[node] = stored[node].max(token.0);
                    }
                    token
                }
            };
            assert!(token.0 > last, "{token:?} after {last}");
            last = token.0;
        }
    }
}
