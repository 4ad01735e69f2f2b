//! Property tests of a user: what they find, write and report.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock_sim::context::Context;
use quorlock_sim::property_test::{CodeLocation, Found, PropertyTest, Shortfall};
use quorlock_sim::resource::{KeyValueStore, Queue, Service, Table, TransactionError};
use quorlock_sim::{always, eventually, mark, sometimes};
use quorlock_sim_plan::property::Property;
use quorlock_sim_world::history::own::Modality;

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Increments a counter under a lock, with a read and a write that carry no token.
async fn raise(ctx: Context, counter: Rc<KeyValueStore<u64>>) {
    let store = counter.client(&ctx);
    let lock = ctx.locks().lock("counter");
    loop {
        ctx.sleep(Duration::from_millis(3)).await;
        let Ok(guard) = lock.acquire().await else {
            continue;
        };
        mark!("reads, with token {}", guard.fencing_token().0);
        if let Ok(Some(read)) = store.get("count").await
            && guard.is_held()
            && let Ok(Some(before)) = store.put("count", read + 1).await
        {
            always!(
                before == read,
                "no raise is lost",
                "{before} is overwritten by one who read {read}"
            );
        }
        let _ = guard.release().await;
    }
}

fn counter() -> KeyValueStore<u64> {
    KeyValueStore::new("counter").with("count", 0)
}

/// A stop waits for a use of a clock, a timer, randomness or the network, so it strikes after it began.
#[test]
fn the_bar_of_a_stop_stands_where_the_pause_is_drawn() {
    let test = PropertyTest::new("stopped")
        .seeds(200)
        .faults("stop-inside")
        .world(counter)
        .failures_in(folder("stopped"));
    let found = test.check(raise).unwrap_err();
    let page = found.violated().unwrap().page().unwrap();
    let page = fs::read_to_string(page).unwrap();
    let time = |text: &str, begin: &str| -> Option<String> {
        let (_, rest) = text.split_once(begin)?;
        rest.split_once(" ms").map(|(time, _)| time.to_owned())
    };
    let stops: Vec<&str> = page
        .split("fault at ")
        .skip(1)
        .filter(|rest| {
            rest.lines()
                .next()
                .is_some_and(|line| line.contains("is stopped for"))
        })
        .collect();
    assert!(!stops.is_empty());
    for stop in stops {
        let struck = time(&format!("@{stop}"), "@").unwrap();
        assert!(
            page.contains(&format!(": paused from {struck} ms")),
            "{struck}"
        );
    }
}

fn says_how_to_repeat_it(message: &str, (file, page): (&Path, &Path), seed: u64) {
    let lines: Vec<&str> = message.lines().rev().take(3).collect();
    let (file, page) = (file.display(), page.display());
    assert_eq!(
        lines,
        [
            format!(
                "the whole run: QUORLOCK_SEED={seed} cargo test -p shop -- --exact counter::raises"
            ),
            format!("look at it:    {page}"),
            format!(
                "repeat it:     QUORLOCK_REPLAY={file} cargo test -p shop -- --exact counter::raises"
            ),
        ]
    );
    assert!(message.contains("reads, with token"), "{message}");
}

/// Checks the page of the failure.
fn shows_what_was_stated(page: &Path, seed: u64) {
    let page = fs::read_to_string(page).expect("a page");
    for shown in [
        "no raise is lost",
        "reads, with token",
        "The property &quot;no raise is lost&quot; is broken",
        // No client has called `ctx.name`.
        "nodes have counter locked for client",
        &format!("<dt>seed</dt><dd>{seed}</dd>"),
        "QUORLOCK_REPLAY=",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn a_broken_property_is_shrunk_written_drawn_and_repeated() {
    let folder = folder("raises");
    let test = PropertyTest::at(CodeLocation::new("shop", "shop::counter", "raises"))
        .seeds(200)
        .without_outages()
        .world(counter)
        .failures_in(&folder);
    let found = test.check(raise).unwrap_err();
    assert_eq!(found.property(), Some("no raise is lost"));
    let violated = found.violated().unwrap();
    let (before, after) = violated.sizes().unwrap();
    assert!(after.faults <= 4, "{after:?}");
    assert_eq!(after.clients, 2, "{after:?}");
    assert!(
        after.operations <= 40 && after.operations < before.operations,
        "{after:?}"
    );

    let (file, page) = (violated.file().unwrap(), violated.page().unwrap());
    let seed = violated.seed();
    says_how_to_repeat_it(&found.to_string(), (file, page), seed);
    shows_what_was_stated(page, seed);

    let again = test.replay(file, raise).unwrap_err();
    let again = again.violated().unwrap();
    assert_eq!(again.run().trace, violated.run().trace);
    assert_eq!(again.violation(), violated.violation());
    let whole = test.check_seed(seed, raise).unwrap_err();
    assert_eq!(whole.property(), Some("no raise is lost"));

    let other = PropertyTest::new("another").world(counter);
    let passed = other.replay(file, raise).unwrap();
    assert_eq!(passed.runs(), 0);
    assert!(passed.notes()[0].contains("is of the test counter::raises"));

    let error = quorlock_sim_lab::study::source::Source::read(file)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("this is a failure of a test: replay it with `QUORLOCK_REPLAY="),
        "{error}"
    );
}

#[test]
fn a_property_that_is_never_true_fails_the_test_by_its_name() {
    let test = PropertyTest::new("never").seeds(5);
    let found = test.check(async |ctx: Context, _| {
        sometimes!(7 < ctx.client(), "there is an eighth client");
    });
    let found = found.unwrap_err();
    assert_eq!(found.property(), Some("there is an eighth client"));
    let expected =
        "the property \"there is an eighth client\" (sometimes!) was never true: it was checked";
    assert!(found.to_string().starts_with(expected), "{found}");
}

#[test]
fn a_property_that_is_never_looked_at_fails_the_test_by_its_name() {
    let test = PropertyTest::new("never")
        .seeds(5)
        .expecting("nothing is lost");
    let found = test.check(async |ctx: Context, _| {
        sometimes!(ctx.client() == 0, "there is a first client");
        if 60 < ctx.client() {
            always!(true, "nothing is lost");
        }
    });
    let found = found.unwrap_err();
    assert!(
        matches!(*found, Found::Shortfall(Shortfall::NeverLookedAt { .. })),
        "{found}"
    );
    assert_eq!(found.property(), Some("nothing is lost"));
    assert!(found.to_string().contains("was never checked"), "{found}");
}

#[test]
fn a_test_whose_clients_do_nothing_fails() {
    let found = PropertyTest::new("idle")
        .seeds(3)
        .check(async |_, _| {})
        .unwrap_err();
    assert_eq!(
        *found.to_string(),
        *"no client did anything in 3 runs: none acquired a lock, called a resource or stated a property"
    );
}

#[test]
fn what_must_come_is_looked_for_until_the_run_ends() {
    let waits = |max: u64| {
        let test = PropertyTest::new("waits")
            .seeds(5)
            .faults("none")
            .failures_in(folder("waits"));
        test.check(move |ctx: Context, _| async move {
            for looked in 0.. {
                eventually!(looked == max, "the time comes", "{looked} of {max}");
                ctx.sleep(Duration::from_millis(50)).await;
            }
        })
    };
    let passed = waits(20).unwrap();
    let (modality, name, checks, holds) = passed.properties().next().unwrap();
    assert_eq!(
        (modality, name, holds),
        (Modality::Eventually, "the time comes", 15)
    );
    assert!(400 < checks);
    let found = waits(1_000).unwrap_err();
    let violated = found.violated().unwrap();
    assert_eq!(violated.violation().property, Property::Eventually);
    assert_eq!(found.property(), Some("the time comes"));
}

#[test]
fn a_client_that_panics_breaks_a_property_and_the_message_says_where() {
    let test = PropertyTest::new("panics")
        .seeds(20)
        .failures_in(folder("panics"));
    let found = test.check(async |ctx: Context, _| {
        ctx.sleep(Duration::from_millis(5)).await;
        assert!(ctx.client() < 2, "the third client has no work");
    });
    let found = found.unwrap_err();
    assert_eq!(found.property(), Some("no client panics"));
    let story = &found.violated().unwrap().violation().story;
    assert!(
        story.contains("the third client has no work, in "),
        "{story}"
    );
    assert!(story.contains("property_tests.rs:"), "{story}");
}

#[test]
fn a_client_that_uses_a_timer_of_tokio_is_told_what_to_do() {
    let test = PropertyTest::new("timer")
        .seeds(1)
        .failures_in(folder("timer"));
    #[expect(clippy::disallowed_methods, reason = "what a user may write")]
    let found = test.check(async |_, _| tokio::time::sleep(Duration::from_millis(5)).await);
    let found = found.unwrap_err();
    assert_eq!(found.property(), Some("no client panics"));
    let story = &found.violated().unwrap().violation().story;
    for part in [
        "timers, tasks and sockets of tokio do not run",
        "ctx.sleep(..)",
        "turmoil.md",
    ] {
        assert!(story.contains(part), "{story}");
    }
}

/// Runs a client that holds its locks for as long as `choose` says, each run twice.
fn twice(name: &str, choose: fn() -> u64) -> Result<(), String> {
    let test = PropertyTest::new(name)
        .seeds(3)
        .faults("none")
        .checking_determinism()
        .failures_in(folder(name));
    let checked = test.check(move |ctx: Context, _| async move {
        let guard = ctx.locks().lock("a").acquire().await.expect("a lock");
        ctx.sleep(Duration::from_micros(choose())).await;
        ctx.mark("has waited");
        guard.release().await.expect("a release");
    });
    checked.map(drop).map_err(|found| found.to_string())
}

#[test]
fn passing_runs_that_use_what_is_not_simulated_are_found_by_making_them_twice() {
    assert_eq!(twice("same", || 500), Ok(()));

    #[expect(clippy::disallowed_types, reason = "what a user may write")]
    fn first_of_a_map() -> u64 {
        let map: std::collections::HashMap<u64, ()> = (0..1_000).map(|key| (key, ())).collect();
        map.keys().next().copied().unwrap()
    }
    #[expect(clippy::disallowed_methods, reason = "what a user may write")]
    fn nanos_of_a_clock() -> u64 {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::from(since.subsec_nanos()) % 1_000
    }
    for (name, choose) in [
        ("map", first_of_a_map as fn() -> u64),
        ("clock", nanos_of_a_clock),
    ] {
        let error = twice(name, choose).unwrap_err();
        let differ = "two runs of seed 0 differ, first in event ";
        assert!(error.starts_with(differ), "{error}");
        for part in [
            "Alarm at ",
            "the story of the first run:",
            "iterates over a HashMap",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn the_world_is_looked_at_when_everything_is_at_rest() {
    let test = PropertyTest::new("at rest")
        .seeds(10)
        .failures_in(folder("at-rest"))
        .world(|| Cell::new(0_u32))
        .finally(|begun| always!(begun.get() < 3, "three never begin", "{}", begun.get()));
    let found = test.check(async |_, begun: Rc<Cell<u32>>| begun.set(begun.get() + 1));
    assert_eq!(found.unwrap_err().property(), Some("three never begin"));
}

#[test]
fn code_that_does_not_repeat_itself_is_told_so() {
    let runs = Arc::new(AtomicU64::new(0));
    let test = PropertyTest::new("odd").seeds(9).failures_in(folder("odd"));
    let found = test.check(move |ctx: Context, _| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        async move {
            ctx.sleep(Duration::from_millis(run)).await;
            always!(run < 10, "the first runs pass");
        }
    });
    let message = found.unwrap_err().to_string();
    assert!(message.contains("two runs differ"), "{message}");
}

/// Only the resource has faults.
#[test]
fn a_service_is_late_lost_down_and_says_which() {
    let world = || {
        let mut done = 0_u64;
        Service::new("numbers", move |by: u64| {
            done += by;
            done
        })
    };
    let test = PropertyTest::new("numbers").seeds(40).world(world);
    let passed = test.check(async |ctx: Context, service: Rc<Service<u64, u64>>| {
        use quorlock_sim::resource::CallError::{Refused, Unanswered};
        let service = service.client(&ctx);
        let (mut asked, mut heard, mut unsure) = (0, 0, 0);
        loop {
            ctx.sleep(Duration::from_millis(10)).await;
            let began = ctx.now();
            let answer = service.call(1).await;
            asked += 1;
            unsure += u64::from(answer == Err(Unanswered));
            sometimes!(answer == Err(Refused), "it is down");
            sometimes!(answer == Err(Unanswered), "no answer comes");
            let took = ctx.now().since(began);
            sometimes!(
                answer.is_ok() && Duration::from_millis(20) < took,
                "an answer is late"
            );
            if let Ok(done) = answer {
                always!(heard < done, "what was done once is not forgotten");
                heard = done;
            }
            sometimes!(20 < asked && unsure == 0, "all is well for long");
        }
    });
    let passed = passed.unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(passed.runs(), 40);
}

/// A worker confirms the items that it has finished, and counts how often it got each item.
#[test]
fn a_queue_delivers_each_item_at_least_once_and_some_twice() {
    struct Work {
        queue: Queue<usize>,
        done: [Cell<u32>; 20],
    }
    let world = || {
        let queue = Queue::new("work", Duration::from_millis(80));
        Work {
            queue: (0..20).fold(queue, Queue::with),
            done: Default::default(),
        }
    };
    let test = PropertyTest::new("work")
        .seeds(60)
        .world(world)
        .finally(|work| {
            let never = work.done.iter().filter(|done| done.get() == 0).count();
            always!(
                never == 0 || !work.queue.is_empty(),
                "what left the queue was done"
            );
            sometimes!(work.queue.is_empty(), "the queue is done with");
            sometimes!(
                work.done.iter().any(|done| 1 < done.get()),
                "an item is done twice"
            );
        });
    let passed = test.check(async |ctx: Context, work: Rc<Work>| {
        let queue = work.queue.client(&ctx);
        loop {
            if let Ok(Some(delivery)) = queue.receive().await {
                ctx.sleep(Duration::from_millis(10)).await;
                let done = &work.done[delivery.value];
                sometimes!(delivery.attempt == 1, "it comes for the first time");
                done.set(done.get() + 1);
                let _ = queue.confirm(&delivery).await;
            }
            ctx.sleep(Duration::from_millis(5)).await;
        }
    });
    passed.unwrap_or_else(|found| panic!("{found}"));
}

/// Two accounts, between which clients move money without a lock.
#[test]
fn transactions_of_a_table_are_all_or_nothing_and_one_of_two_that_conflict_is_refused() {
    let world = || Table::new("accounts").with("a", 50_i64).with("b", 50);
    let test = PropertyTest::new("accounts")
        .seeds(40)
        .world(world)
        .finally(|table| {
            let sum = table.peek("a").unwrap() + table.peek("b").unwrap();
            always!(sum == 100, "no money is lost", "there are {sum}");
            sometimes!(table.peek("a") != Some(50), "money moves");
        });
    let passed = test.check(async |ctx: Context, table: Rc<Table<i64>>| {
        let table = table.client(&ctx);
        loop {
            ctx.sleep(Duration::from_millis(2)).await;
            let mut moves = table.begin();
            let (Ok(Some(a)), Ok(Some(b))) = (moves.get("a").await, moves.get("b").await) else {
                continue;
            };
            moves.put("a", a - 1);
            moves.put("b", b + 1);
            let done = moves.commit().await;
            sometimes!(
                matches!(done, Err(TransactionError::Conflict { .. })),
                "two conflict"
            );
        }
    });
    passed.unwrap_or_else(|found| panic!("{found}"));
}
