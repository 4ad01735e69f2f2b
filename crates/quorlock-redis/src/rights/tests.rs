use quorlock_core::message::{ForceRelease, Inspect};
use quorlock_core::name::Name;
use redis::Value;

use super::*;

fn rights(name: &str, prefix: &str) -> Rights {
    let name = Name::new(name).unwrap();
    let request = Request::Inspect(Inspect::of(name));
    Rights::of(&request, &Home::PLAIN, "jobs".into(), prefix.as_bytes())
}

/// Returns an answer that refuses the uses for which `is_refused` holds.
fn answer(rights: &Rights, is_refused: impl Fn(&[Vec<u8>]) -> bool) -> Value {
    let uses = rights.needs.uses();
    let replies = uses.map(|used| match is_refused(&rights.needs.words(used)) {
        true => Value::Int(2),
        false => Value::Int(0),
    });
    Value::Array(replies.collect())
}

#[test]
fn a_key_and_a_command_are_told_apart() {
    let rights = rights("tenant:job", "tenant:");
    let missing = |is_refused: &dyn Fn(&[Vec<u8>]) -> bool| {
        let lack = rights.lack(&answer(&rights, is_refused));
        lack.map(|(_, text)| text)
    };
    assert_eq!(missing(&|_| false), None);
    let queue = missing(&|words| {
        words
            .get(1)
            .is_some_and(|key| key.starts_with(b"redisson_lock_q"))
    });
    assert_eq!(
        queue.unwrap(),
        "the user jobs lacks the key redisson_lock_queue:{tenant:job}, which does not begin with the prefix tenant:: \
         ACL SETUSER jobs ~redisson_lock_queue:{tenant:*"
    );
    let verb = missing(&|words| words.first().is_some_and(|verb| verb == b"hlen"));
    assert_eq!(
        verb.unwrap(),
        "the user jobs lacks the command HLEN: ACL SETUSER jobs +hlen"
    );
    let both = missing(&|words| {
        words.first().is_some_and(|verb| verb == b"llen")
            || words.get(1).is_some_and(|key| key == b"tenant:job")
    });
    assert_eq!(
        both.unwrap(),
        "the user jobs lacks the key tenant:job; and the command LLEN: ACL SETUSER jobs ~tenant:* +llen"
    );
}

#[test]
fn a_command_that_the_server_lacks_is_no_right() {
    let rights = rights("job", "");
    let replies = rights.needs.uses();
    let replies = replies.map(|used| match rights.needs.words(used).first() {
        Some(verb) if verb == b"hgetall" => Value::Int(1),
        _ => Value::Int(0),
    });
    let answer = Value::Array(replies.collect());
    let (cause, text) = rights.lack(&answer).unwrap();
    assert_eq!(cause, Cause::Unsupported);
    assert!(
        text.starts_with("the server has no command HGETALL: "),
        "{text}"
    );
}

#[test]
fn without_a_prefix_the_rule_is_for_all_derived_keys_and_the_name_itself() {
    let name = Name::new("orders *").unwrap();
    let request = Request::ForceRelease(ForceRelease { name });
    let rights = Rights::of(&request, &Home::PLAIN, "jobs".into(), b"");
    let all = answer(&rights, |_| true);
    let (_, text) = rights.lack(&all).unwrap();
    for rule in [
        " ~orders?? ",
        " ~redisson_lock_queue:* ",
        " ~redisson_lock_timeout:* ",
        " ~quorlock_lock_alive:* ",
        " ~{orders??}:* ",
        " &redisson_lock__channel:* ",
        " &redisson_rwlock:*",
    ] {
        assert!(text.contains(rule), "{rule}: {text}");
    }
}

#[test]
fn one_rule_grants_all_that_may_be_missing() {
    let rights = rights("job", "");
    let told = |is_refused: &dyn Fn(&[Vec<u8>]) -> bool| {
        let Value::Array(replies) = answer(&rights, is_refused) else {
            panic!("an answer is an array");
        };
        let (missing, is_certain) = rights.needs.perhaps_missing(&numbers(&replies));
        (rights.told(&missing), is_certain)
    };
    // DEL is allowed on another key, and PTTL, HLEN, HMGET and HGETALL on none.
    let (all, is_certain) = told(&|words| words.get(1).is_some_and(|key| key == b"job"));
    assert!(
        all.ends_with(": ACL SETUSER jobs ~job +pttl +hlen +hmget +hgetall"),
        "{all}"
    );
    assert!(!is_certain);
    let (verb, is_certain) = told(&|words| words.first().is_some_and(|verb| verb == b"hlen"));
    assert!(verb.ends_with(": ACL SETUSER jobs +hlen"), "{verb}");
    assert!(is_certain);
}
