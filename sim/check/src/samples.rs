//! Histories for tests of the checkers, and of what else reads histories.

use quorlock_sim_world::history::{
    Accepted, Access, Action, Answered, Grant, History, HoldId, LockAnswer, NameId, Operation,
    Outcome, Process, Reign, Section, Written,
};

pub fn process(client: u16) -> Process {
    Process {
        client,
        restarts: 0,
    }
}

fn owner(client: u16) -> quorlock::OwnerId {
    quorlock::OwnerId {
        client: quorlock_core::owner::ClientId::from_random(u128::from(client)),
        number: 1,
    }
}

pub fn history(sections: Vec<Section>) -> History {
    History {
        names: vec!["a".into(), "b".into()],
        sections,
        ..History::default()
    }
}

pub fn believed(client: u16, hold: u32, entered: u64, until: u64) -> Section {
    Section {
        process: process(client),
        hold: HoldId(hold),
        name: NameId(0),
        won: entered,
        entered,
        believed: Some(until),
        left: until,
        access: Access::Alone,
        under: HoldId::NONE,
    }
}

pub fn granted(hold: u32, invoked: u64, won: u64, token: u64) -> Grant {
    Grant {
        hold: HoldId(hold),
        process: process(0),
        owner: owner(0),
        name: NameId(0),
        invoked,
        won,
        token,
        access: Access::Alone,
    }
}

pub fn reigned(hold: u32, elected: u64, until: u64, term: u64) -> Reign {
    Reign {
        hold: HoldId(hold),
        process: process(u16::try_from(hold).unwrap_or(u16::MAX)),
        name: NameId(0),
        term,
        elected,
        believed: Some(until),
        ended: until,
    }
}

/// An answer of a node to a client. `at` is both the true time and the reading of the node's clock, in
/// milliseconds.
pub fn answered(client: u16, at: u64, answer: Answered) -> LockAnswer {
    LockAnswer {
        at,
        node: 0,
        life: 0,
        wall: at,
        name: NameId(0),
        process: process(client),
        owner: owner(client),
        answer,
    }
}

pub fn written(hold: u32, at: u64, token: Option<u64>) -> Written {
    Written {
        process: process(0),
        hold: HoldId(hold),
        name: NameId(0),
        at,
        token,
        read_at: None,
        accepted: Accepted::Yes,
    }
}

pub fn acquired(invoked: u64, completed: u64, outcome: Outcome) -> Operation {
    Operation {
        process: process(0),
        action: Action::Acquire,
        names: 1,
        hold: HoldId(0),
        invoked,
        completed,
        outcome,
        token: 1,
    }
}
