//! Measures the parts of a lock without a network: the cost of each decision.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use quorlock::{EmbeddedNode, Locks};
use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::{Lease, Terms};
use quorlock_core::message::{Access, Acquire, Claim, Mode, Release, Renew, Request, Retention};
use quorlock_core::name::Name;
use quorlock_core::node::Node;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::quorum::{Members, Tally, Threshold, Vote};
use quorlock_core::round::{Answer, Order, Outcome, Round};
use quorlock_core::time::{Time, WallMillis};

fn lease() -> Lease {
    Lease::new(Duration::from_secs(30)).expect("a lease")
}

fn owner() -> OwnerId {
    OwnerId {
        client: ClientId::from_random(7),
        number: 1,
    }
}

fn majority(of: usize) -> Arc<Members> {
    Arc::new(Members::new([Threshold::majority(of)]))
}

/// Asks all members and delivers the replies until the round is won.
fn win(members: &Arc<Members>) -> Outcome {
    let now = Time::from_millis(1);
    let timeout = Duration::from_secs(1);
    let mut round = Round::new(now, members.clone(), lease(), timeout, Order::Parallel);
    while round.next_ask(now).is_some() {}
    for member in members.all() {
        round.handle_answer(now, member, Answer::Granted(Token(1)));
        if round.outcome(now) == Outcome::Won {
            break;
        }
    }
    round.outcome(now)
}

fn decisions(c: &mut Criterion) {
    for of in [1, 5] {
        let members = majority(of);
        c.bench_function(&format!("round/won, n = {of}"), |b| {
            b.iter(|| win(black_box(&members)));
        });
        c.bench_function(&format!("tally/verdict, n = {of}"), |b| {
            let mut tally = Tally::new(members.clone());
            for member in members.all().take(of / 2 + 1) {
                tally.record(member, Vote::Granted);
            }
            b.iter(|| black_box(&tally).verdict());
        });
        c.bench_function(&format!("terms/valid until, n = {of}"), |b| {
            let mut terms = Terms::new(members.clone());
            for member in members.all() {
                terms.confirm(member, Time::from_millis(member.index() as u64));
            }
            b.iter(|| black_box(&terms).valid_until());
        });
    }
}

fn node(c: &mut Criterion) {
    let name = Name::new("orders/42").expect("a name");
    let retention = Retention::of(Duration::from_secs(86_400));
    let acquire = Request::Acquire(Acquire {
        name: name.clone(),
        access: Access::Plain,
        owner: owner(),
        count: 1,
        lease: lease(),
        fence: Fence::Mint {
            floor: WallMillis(1),
            slack_millis: 15_000,
        },
        retention,
        keep: None,
        after: None,
        replaces: None,
        continues: None,
        check: None,
    });
    let release = Request::Release(Release {
        name: name.clone(),
        mode: Mode::Plain,
        owner: owner(),
        count: 0,
    });
    let renew = Request::Renew(Renew {
        mode: Mode::Plain,
        claims: vec![Claim {
            name,
            owner: owner(),
            count: 1,
            lease: lease(),
            token: Token(1),
            keep: None,
        }],
        retention,
    });
    let now = WallMillis(1_000_000);
    c.bench_function("node/acquire and release", |b| {
        let mut node = Node::default();
        b.iter(|| {
            let granted = node.apply(now, black_box(&acquire));
            let freed = node.apply(now, black_box(&release));
            (granted.reply, freed.reply)
        });
    });
    c.bench_function("node/renew", |b| {
        let mut node = Node::default();
        let _ = node.apply(now, &acquire);
        b.iter(|| node.apply(now, black_box(&renew)).reply);
    });
}

/// Measures the whole product over nodes in the same process: everything except the adapter and the network.
fn product(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    for nodes in [1, 5] {
        let locks = {
            let _inside = runtime.enter();
            Locks::builder()
                .trust_fresh_nodes()
                .on_nodes((0..nodes).map(|_| EmbeddedNode::new()))
                .expect("different nodes")
        };
        c.bench_function(&format!("locks/acquire and release, n = {nodes}"), |b| {
            b.iter(|| {
                runtime.block_on(async {
                    let guard = locks.lock("orders/42").acquire().await;
                    let guard = guard.expect("the lock is free");
                    guard.release().await.expect("it was held");
                });
            });
        });
    }
}

criterion_group!(core, decisions, node, product);
criterion_main!(core);
