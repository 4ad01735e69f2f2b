use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::lease::Lease;
use quorlock_core::marker::{
    Act, Check, ConfirmedMarker, Figures, MarkerState, Nonce, Process, Restarts, Shown, ShownMarker,
};
use quorlock_core::message::{
    AcquireReply, Claim, ForceReleaseReply, Found, Freshness, InspectReply, QueuePlace,
    ReleaseReply, RenewReply, Reply, Ttl,
};
use quorlock_core::name::Name;
use quorlock_core::owner::ClientId;
use quorlock_core::time::WallMillis;
use quorlock_core::transport::{Cause, Execution};
use redis::Value;

use super::*;

const OWNER: &str = "00000000-0000-4000-8000-000000000000:7";

fn owner() -> OwnerId {
    OwnerId {
        client: ClientId::from_random(0),
        number: 7,
    }
}

fn lease() -> Lease {
    Lease::new(Duration::from_secs(30)).unwrap()
}

fn acquire(fence: Fence, retention: Retention) -> Request {
    Request::Acquire(Acquire {
        name: Name::new("n").unwrap(),
        access: Access::Plain,
        owner: owner(),
        count: 2,
        lease: lease(),
        fence,
        retention,
        keep: None,
        after: None,
        replaces: None,
        continues: None,
        check: None,
    })
}

fn renew(names: &[&str]) -> Request {
    let claim = |name: &&str| Claim {
        name: Name::new(name).unwrap(),
        owner: owner(),
        count: 1,
        lease: lease(),
        token: Token(9),
        keep: None,
    };
    Request::Renew(Renew {
        mode: Mode::Plain,
        claims: names.iter().map(claim).collect(),
        retention: Retention::Forever,
    })
}

fn release() -> Request {
    Request::Release(Release {
        name: Name::new("{n").unwrap(),
        mode: Mode::Plain,
        owner: owner(),
        count: 0,
    })
}

/// Returns the arguments after the script.
fn words(request: &Request) -> Vec<String> {
    let cmd = encode(request, &Home::PLAIN, By::Digest);
    let packed = String::from_utf8(cmd.get_packed_command()).unwrap();
    let words = packed.split("\r\n").skip(2).step_by(2);
    words.skip(2).map(str::to_owned).collect()
}

#[test]
fn an_acquire_is_written_as_the_script_reads_it() {
    let fence = Fence::Mint {
        floor: WallMillis(u64::MAX),
        slack_millis: 15,
    };
    let most = "9007199254740991";
    assert_eq!(
        words(&acquire(fence, Retention::Millis(0))),
        [
            "3",
            "n",
            "redisson_lock_token:{n}",
            "redisson_lock_queue:{n}",
            OWNER,
            "2",
            "30000",
            "1",
            most,
            "15"
        ]
    );
    assert_eq!(
        words(&acquire(Fence::Carry(Token(5)), Retention::Forever)),
        [
            "3",
            "n",
            "redisson_lock_token:{n}",
            "redisson_lock_queue:{n}",
            OWNER,
            "2",
            "30000",
            "0",
            "5",
            ""
        ]
    );
}

#[test]
fn a_renewal_names_all_keys_before_all_arguments() {
    assert_eq!(
        words(&renew(&["a", "b"])),
        [
            "4",
            "a",
            "b",
            "redisson_lock_token:{a}",
            "redisson_lock_token:{b}",
            "0",
            "2",
            "1",
            "30000",
            "",
            OWNER,
            "9",
            OWNER,
            "9",
        ]
    );
}

#[test]
fn a_release_names_the_channel() {
    assert_eq!(
        words(&release()),
        ["1", "{n", OWNER, "0", "redisson_lock__channel:{n"]
    );
}

#[test]
fn a_script_is_called_by_its_digest_or_by_its_text() {
    let digest = encode(&release(), &Home::PLAIN, By::Digest).get_packed_command();
    let text = encode(&release(), &Home::PLAIN, By::Text).get_packed_command();
    assert!(digest.starts_with(b"*7\r\n$7\r\nEVALSHA\r\n$40\r\n"));
    assert!(text.starts_with(b"*7\r\n$4\r\nEVAL\r\n"));
    assert!(String::from_utf8(text).unwrap().contains("PUBLISH"));
}

/// Dragonfly looks for the mark only there.
#[test]
fn a_script_that_makes_up_keys_says_so_in_its_first_line() {
    let mut requests = vec![inspect(), force_release()];
    let accesses = [
        Access::Plain,
        Access::Fair(QueuePlace::None),
        Access::Read { under: None },
        Access::Write,
    ];
    for access in accesses {
        if let Request::Acquire(ask) = acquire(Fence::Carry(Token(5)), Retention::Forever) {
            requests.push(Request::Acquire(Acquire { access, ..ask }));
        }
    }
    for mode in [Mode::Plain, Mode::Fair, Mode::Read, Mode::Write] {
        if let Request::Renew(ask) = renew(&["a"]) {
            requests.push(Request::Renew(Renew { mode, ..ask }));
        }
        if let Request::Release(ask) = release() {
            requests.push(Request::Release(Release { mode, ..ask }));
        }
    }
    assert_eq!(requests.len(), 14);
    for home in [Home::PLAIN, Home::CLUSTER] {
        for request in &requests {
            let packed = encode(request, &home, By::Text).get_packed_command();
            let packed = String::from_utf8(packed).unwrap();
            // Before the script are the number of words, EVAL, and the lengths of both.
            let script = packed.splitn(5, "\r\n").nth(4).unwrap();
            let is_marked = script.starts_with("--!df flags=allow-undeclared-keys\n");
            assert_eq!(is_marked, !declares_its_keys(request), "{request:?}");
        }
    }
}

fn ints(values: &[i64]) -> Value {
    Value::Array(values.iter().copied().map(Value::Int).collect())
}

#[test]
fn every_answer_of_acquire_is_understood() {
    let request = acquire(Fence::Carry(Token(1)), Retention::Forever);
    let reply = |answer| match decode(&request, &answer) {
        Ok(Reply::Acquire(reply)) => reply,
        other => panic!("{other:?}"),
    };
    let granted = |freshness| AcquireReply::Granted {
        freshness,
        token: Token(1_700_000_000_000),
    };
    assert_eq!(
        reply(Value::Int(1_700_000_000_000)),
        granted(Freshness::Anew)
    );
    assert_eq!(
        reply(ints(&[2, 1_700_000_000_000])),
        granted(Freshness::AlreadyYours)
    );
    let refused = |ttl| AcquireReply::Refused { ttl, version: None };
    assert_eq!(reply(ints(&[0, 0])), refused(Ttl::Millis(0)));
    assert_eq!(reply(ints(&[0, -1])), refused(Ttl::Unbounded));
    let queued = AcquireReply::Queued {
        ttl: Ttl::Millis(5),
    };
    assert_eq!(reply(ints(&[3, 5])), queued);
    let mode = |mode: &str| reply(Value::BulkString(mode.into()));
    assert_eq!(mode("read"), AcquireReply::OtherMode(Mode::Read));
    assert_eq!(mode("write"), AcquireReply::OtherMode(Mode::Write));
    let error = decode(&request, &Value::BulkString(b"else".to_vec())).unwrap_err();
    assert_eq!(
        (error.cause, error.execution),
        (Cause::WrongType, Execution::Definite)
    );
}

#[test]
fn a_server_that_is_still_the_one_that_is_trusted_says_nothing_of_itself() {
    let asking = |trusted| {
        let Request::Acquire(ask) = acquire(Fence::Carry(Token(1)), Retention::Forever) else {
            unreachable!()
        };
        let check = Check {
            figures: Figures::same(60_000),
            act: Act::Look,
            trusted,
            restarts: Restarts::MayForget,
            known: None,
        };
        Request::Acquire(Acquire {
            check: Some(check),
            ..ask
        })
    };
    let shown = |process, marker| Shown {
        process: Process(process),
        marker,
    };
    let granted = AcquireReply::Granted {
        freshness: Freshness::Anew,
        token: Token(9),
    };
    let trusted = asking(Some(ConfirmedMarker {
        process: Process(0xabc),
        nonce: Nonce::new(7),
        figures: Figures::same(60_000),
    }));
    let said = words(&trusted);
    let check = [
        "0000000000abc:7:60000:ripe",
        "",
        "look",
        "0",
        "30000",
        "60000",
    ];
    assert!(said.ends_with(&check.map(str::to_owned)), "{said:?}");
    let confirmed = ShownMarker::Own(Nonce::new(7), MarkerState::Confirmed, Figures::same(60_000));
    assert_eq!(
        decode(&trusted, &Value::Int(9)),
        Ok(Reply::Checked(granted, shown(0xabc, confirmed)))
    );

    let none = Value::BulkString(Vec::new());
    let long = [
        Value::Int(9),
        Value::Int(5),
        Value::Int(1),
        Value::Int(0),
        none,
    ];
    let other = Reply::Checked(granted, shown(5, ShownMarker::Anothers));
    for request in [trusted, asking(None)] {
        let answer = Value::Array(long.to_vec());
        assert_eq!(decode(&request, &answer), Ok(other.clone()));
    }
    assert!(decode(&asking(None), &Value::Int(9)).is_err());
}

#[test]
fn every_answer_of_renew_and_release_is_understood() {
    let replies = vec![
        RenewReply::NotYours,
        RenewReply::AlreadyYours { token: Token(0) },
    ];
    assert_eq!(
        decode(&renew(&["a", "b"]), &ints(&[-1, 0])),
        Ok(Reply::Renew(replies))
    );
    for (answer, reply) in [
        (0, ReleaseReply::NotYours),
        (1, ReleaseReply::FREED),
        (2, ReleaseReply::Kept),
        (3, ReleaseReply::Left),
        (4, ReleaseReply::Freed { told: 1 }),
        (52, ReleaseReply::Freed { told: 49 }),
        (4_294_967_298, ReleaseReply::Freed { told: u32::MAX }),
    ] {
        assert_eq!(
            decode(&release(), &Value::Int(answer)),
            Ok(Reply::Release(reply))
        );
    }
}

fn inspect() -> Request {
    let name = Name::new("n").unwrap();
    Request::Inspect(Inspect::of(name))
}

fn force_release() -> Request {
    let name = Name::new("n").unwrap();
    Request::ForceRelease(ForceRelease { name })
}

#[test]
fn what_operators_ask_is_written_as_the_scripts_read_it() {
    let queue = "redisson_lock_queue:{n}";
    assert_eq!(
        words(&inspect()),
        ["3", "n", "redisson_lock_token:{n}", queue, "{n}:"]
    );
    assert_eq!(
        words(&force_release()),
        [
            "4",
            "n",
            queue,
            "redisson_lock_timeout:{n}",
            "quorlock_lock_alive:{n}",
            "redisson_lock__channel:{n}",
            "redisson_rwlock:{n}",
            "{n}:"
        ]
    );
}

#[test]
fn every_answer_of_inspect_is_understood() {
    let text = |text: &str| Value::BulkString(text.into());
    let plain = |owner: &str, count, ttl| Found::Plain {
        owner: owner.into(),
        count,
        ttl,
    };
    let shared = |writer, readers| Found::ReadWrite {
        writer,
        readers,
        ttl: Ttl::Unbounded,
    };
    let (end, two, none) = (Value::Int(-1), Value::Int(2), Value::Int(0));
    for (parts, found) in [
        (vec![], Found::Nothing),
        (vec![Value::Int(9)], Found::NotALock),
        (
            vec![end.clone(), Value::Nil, none.clone(), two.clone()],
            shared(None, 2),
        ),
        (
            vec![end, text("somebody"), two, none],
            shared(Some(("somebody".into(), 2)), 0),
        ),
        (
            vec![Value::Int(9), text("somebody"), Value::Int(2)],
            plain("somebody", 2, Ttl::Millis(9)),
        ),
    ] {
        for (stored, token) in [(Value::Nil, None), (Value::Int(7), Some(Token(7)))] {
            let mut answer = vec![stored, Value::Int(3)];
            answer.extend(parts.clone());
            let reply = InspectReply::new(found.clone(), 3, token);
            assert_eq!(
                decode(&inspect(), &Value::Array(answer)),
                Ok(Reply::Inspect(reply))
            );
        }
    }
}

#[test]
fn every_answer_of_force_release_is_understood() {
    for (answer, reply) in [
        (Value::Int(0), ForceReleaseReply::WasFree),
        (Value::Int(1), ForceReleaseReply::Freed),
    ] {
        assert_eq!(
            decode(&force_release(), &answer),
            Ok(Reply::ForceRelease(reply))
        );
    }
}

#[test]
fn nonsense_is_an_indeterminate_protocol_error() {
    let carry = acquire(Fence::Carry(Token(1)), Retention::Forever);
    let answers = [
        Value::Nil,
        Value::Okay,
        Value::Int(-2),
        ints(&[4, 1]),
        ints(&[1, -1]),
        ints(&[1]),
        ints(&[-2, 1, 1]),
    ];
    for answer in &answers {
        for request in [
            &carry,
            &renew(&["a", "b", "c"]),
            &release(),
            &force_release(),
        ] {
            let Err(error) = decode(request, answer) else {
                panic!("{request:?} takes {answer:?}");
            };
            assert_eq!(
                (error.cause, error.execution),
                (Cause::Protocol, Execution::Indeterminate)
            );
        }
    }
    for token in [4_294_967_299, 1_795_424_351_607, i64::MAX] {
        assert!(decode(&release(), &Value::Int(token)).is_err(), "{token}");
    }
    let text = || Value::BulkString(b"strange".to_vec());
    for answer in [
        Value::Nil,
        Value::Int(0),
        ints(&[]),
        ints(&[-1]),
        ints(&[1, -2]),
        ints(&[1, 2, -3]),
        Value::Array(vec![Value::Nil, Value::Int(0), Value::Int(1), text()]),
        Value::Array(vec![
            Value::Nil,
            Value::Int(0),
            Value::Int(1),
            text(),
            Value::Int(-1),
        ]),
    ] {
        assert!(decode(&inspect(), &answer).is_err(), "{answer:?}");
    }
}

/// Returns the names, without extension, of the files under `lua/` that contain this text.
fn files_with(text: &str) -> Vec<String> {
    let lua = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let mut files = Vec::new();
    for folder in [lua.clone(), lua.join("shared")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && std::fs::read_to_string(&path).unwrap().contains(text) {
                let file = path.strip_prefix(&lua).unwrap().with_extension("");
                files.push(file.to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    files
}

#[test]
fn rules_of_several_scripts_stand_in_one_file_each() {
    for (rule, file) in [
        ("9007199254740992", "shared/counter"),
        ("yours and stored then", "shared/counter"),
        ("'SET', counter", "shared/counter"),
        ("'TIME'", "shared/clock"),
        ("'LPOP', queue", "shared/queue"),
        ("'PERSIST', queue", "shared/queue"),
        ("reply.err, 'WRONGTYPE'", "shared/look"),
    ] {
        assert_eq!(files_with(rule), [file], "{rule}");
    }
}
