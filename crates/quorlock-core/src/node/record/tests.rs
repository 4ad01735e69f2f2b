use super::super::held::ReadWrite;
use super::*;
use crate::claim_version::ClaimVersion;
use crate::fencing::Fence;
use crate::lease::Lease;
use crate::marker::{Figures, MarkerState, Nonce};
use crate::message::{
    Access, Acquire, AcquireReply, Freshness, Mode, Release, ReleaseReply, Retention,
};
use crate::owner::ClientId;
use std::time::Duration;

fn owner(number: u64) -> OwnerId {
    let client = ClientId::from_random(7);
    OwnerId { client, number }
}

fn at(millis: u64) -> Option<WallMillis> {
    Some(WallMillis(millis))
}

fn full() -> Record {
    let mut record = Record::default();
    let held = ReadWrite {
        writer: Some((owner(1), 2)),
        readers: [(owner(2), 3), (owner(3), 1)].into(),
    };
    record.bare.put(Held::ReadWrite(held), at(50));
    let plain = Held::Plain {
        owner: owner(1),
        count: 1,
    };
    record.braced.put(plain, at(60));
    record.braced.version = Some(ClaimVersion {
        owner: owner(1),
        number: 9,
        lease_millis: 30_000,
    });
    record.shared.token = Some(Key {
        value: Token((1 << 53) - 1),
        expires: None,
    });
    record.shared.queue = Some(Key {
        value: [(owner(4), WallMillis(60)), (owner(5), WallMillis(70))].into(),
        expires: at(70),
    });
    record.marker = Some(Marker {
        process: Process(5),
        nonce: Nonce::new(6),
        figures: Figures::same(60_000),
        state: MarkerState::Confirmed,
        expires: WallMillis(99),
    });
    record.clock = WallMillis(7);
    record.published = 17;
    record.messages = vec![
        (Topic::Lock, Wake::Unlocked),
        (Topic::Waiter(owner(4)), Wake::Unlocked),
        (Topic::ReadWrite, Wake::ReadersMayEnter),
    ];
    record
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let mut strange = Record::default();
    strange.bare.put(Held::NotALock, None);
    for record in [Record::default(), full(), strange] {
        let text = record.encode(0xfeed);
        let read = Record::decode(text.as_bytes());
        assert_eq!(read, Ok((record, 0xfeed)), "{text}");
    }
}

#[test]
fn another_text_is_no_record_and_a_newer_one_is_told() {
    let whole = full().encode(1);
    let strange = |text: &str| match Record::decode(text.as_bytes()) {
        Err(RecordError::Strange { line }) => line,
        other => panic!("{text}: {other:?}"),
    };
    for text in [
        "",
        "hello",
        "hello world\n",
        "quorlock/1 xyz\n",
        "quorlock/0 1\n",
    ] {
        assert_eq!(strange(text), 1, "{text}");
    }
    assert_eq!(strange(whole.trim_end()), 1, "cut off");
    let line = |line: &str| strange(&format!("quorlock/1 1\n{line}\n"));
    for text in [
        "plain x 1 -",
        "",
        &format!("writer {} 1", owner(1)),
        &format!("waiter {} 1", owner(1)),
        "token 1 - 2",
        "token 99999999999999999999 -",
        "token 1",
        "message 0 lock",
        "message 2 lock",
        "lock",
    ] {
        assert_eq!(line(text), 2, "{text}");
    }
    let newer = Record::decode(b"quorlock/2 1\nplain of another form\n");
    let form = "quorlock/2".to_owned();
    assert_eq!(newer, Err(RecordError::Newer { form }));
}

/// Each prefix, and each text with one byte changed, is a record or an error.
#[test]
fn a_damaged_record_is_no_panic() {
    let whole = full().encode(1);
    for end in 0..whole.len() {
        let _ = Record::decode(&whole.as_bytes()[..end]);
        for byte in [b' ', b'\n', b'0', b'\xff'] {
            let mut damaged = whole.clone().into_bytes();
            damaged[end] = byte;
            let _ = Record::decode(&damaged);
        }
    }
}

#[test]
fn a_record_is_of_use_until_its_last_key_expires() {
    assert_eq!(Record::default().useful_until(), at(0));
    assert_eq!(full().useful_until(), None, "a counter for ever");
    let mut counted = full();
    counted.shared.token = None;
    assert_eq!(counted.useful_until(), at(99));
}

#[test]
fn a_record_is_steady_between_two_times_if_no_key_expires_between_them() {
    let steady = |from, until| full().is_steady(WallMillis(from), WallMillis(until));
    assert!(steady(0, 50));
    assert!(!steady(50, 51), "the claims of the read-write lock expire");
    assert!(!steady(55, 61), "the first waiter dies");
    assert!(steady(71, 99));
    assert!(steady(100, 1_000));
}

fn acquire(name: &str, number: u64) -> Request {
    Request::Acquire(Acquire {
        name: Name::new(name).unwrap(),
        access: Access::Plain,
        owner: owner(number),
        count: 1,
        lease: Lease::new(Duration::from_secs(10)).unwrap(),
        fence: Fence::Mint {
            floor: WallMillis(1),
            slack_millis: 0,
        },
        retention: Retention::Millis(100_000),
        keep: None,
        after: None,
        replaces: None,
        continues: None,
        check: None,
    })
}

#[test]
fn twins_have_one_counter_and_a_claim_each() {
    let mut record = Record::default();
    let mut apply = |request| record.apply(Process(0), WallMillis(0), &request);
    let granted = |token| {
        Ok(Reply::Acquire(AcquireReply::Granted {
            freshness: Freshness::Anew,
            token: Token(token),
        }))
    };
    assert_eq!(apply(acquire("x", 1)), granted(0));
    assert_eq!(apply(acquire("{x}", 2)), granted(1));
}

#[test]
fn messages_are_counted_and_the_last_ones_are_kept() {
    let name = Name::new("x").unwrap();
    let mut record = Record::default();
    for number in 0..10 {
        let granted = record.apply(Process(0), WallMillis(0), &acquire("x", number));
        assert!(granted.is_ok());
        let release = Request::Release(Release {
            name: name.clone(),
            mode: Mode::Plain,
            owner: owner(number),
            count: 0,
        });
        let freed = record.apply(Process(0), WallMillis(0), &release);
        assert_eq!(freed, Ok(Reply::Release(ReleaseReply::FREED)));
    }
    assert_eq!(record.published(), 10);
    let after = |seen| record.messages_after(seen).map(<[_]>::len);
    assert_eq!(after(10), Some(0));
    assert_eq!(after(8), Some(2));
    assert_eq!(after(6), Some(4));
    assert_eq!(after(5), None, "a gap");
    assert_eq!(after(11), None, "another record was there before");
}
