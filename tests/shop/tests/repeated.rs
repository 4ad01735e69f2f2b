//! Tests the commands that a failing test prints. Each run is a separate process.

#![expect(clippy::print_stdout, reason = "a process tells another what it did")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock_sim::always;
use quorlock_sim::context::Context;
use quorlock_sim::resource::KeyValueStore;

/// Set in a process that runs the user's test: `broken` or `mended`.
const USERS_TEST: &str = "SHOP_RUNS_USERS_TEST";

/// The name of the test below, whose processes run the user's test instead.
const THIS_TEST: &str = "a_failure_is_repeated_by_its_file_and_by_its_seed";

/// The number of worlds that were created, one for each run.
static WORLDS: AtomicU64 = AtomicU64::new(0);

struct Counter(KeyValueStore<u64>);

impl Default for Counter {
    fn default() -> Self {
        WORLDS.fetch_add(1, Ordering::Relaxed);
        Counter(KeyValueStore::new("counter").with("count", 0))
    }
}

/// The user's test: clients raise a counter under a lock, without its token unless they are mended.
#[expect(
    unnameable_test_items,
    reason = "it is called, and not found by the harness"
)]
fn users_test() {
    #[quorlock_sim::test(seeds = 200, outages = "none", duration = "500ms")]
    async fn no_raise_is_lost(ctx: Context, counter: Rc<Counter>) {
        let is_mended = env::var(USERS_TEST).is_ok_and(|state| state == "mended");
        let store = counter.0.client(&ctx);
        loop {
            ctx.sleep(Duration::from_millis(3)).await;
            let Ok(guard) = ctx.locks().lock("counter").acquire().await else {
                continue;
            };
            let token = guard.fencing_token();
            if is_mended {
                if let Ok(Some(read)) = store.get_fenced("count", token).await {
                    let _ = store.put_fenced("count", read + 1, token).await;
                }
            } else if let Ok(Some(read)) = store.get("count").await
                && guard.is_held()
                && let Ok(Some(before)) = store.put("count", read + 1).await
            {
                always!(before == read, "no raise is lost");
            }
            let _ = guard.release().await;
        }
    }
    no_raise_is_lost();
}

/// The result of a process that ran the user's test.
struct Ran {
    passed: bool,
    output: String,
}

impl Ran {
    /// Runs the user's test in this state, in this folder, with something in the environment.
    fn of(state: &str, folder: &Path, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env::current_exe().expect("a step of the test"));
        command
            .args(["--exact", THIS_TEST, "--nocapture"])
            .current_dir(folder)
            .env_remove("QUORLOCK_SEED")
            .env_remove("QUORLOCK_REPLAY")
            .env(USERS_TEST, state)
            .envs(environment.iter().copied());
        let ran = command.output().expect("a step of the test");
        let output = [ran.stdout, ran.stderr].concat();
        Ran {
            passed: ran.status.success(),
            output: String::from_utf8(output).expect("a step of the test"),
        }
    }

    /// Returns the word that follows a text in the output.
    fn word_after(&self, text: &str) -> &str {
        let (_, rest) = self.output.split_once(text).expect(&self.output);
        rest.split_whitespace().next().expect("a step of the test")
    }

    /// Returns the lines about what clients, resources and faults did.
    fn story(&self) -> Vec<&str> {
        let lines = self.output.lines();
        lines.filter(|line| line.starts_with("  ")).collect()
    }
}

#[test]
fn a_failure_is_repeated_by_its_file_and_by_its_seed() {
    if env::var_os(USERS_TEST).is_some() {
        let reported = Reported;
        users_test();
        drop(reported);
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("repeated");
    std::fs::create_dir_all(&folder).expect("a step of the test");

    let found = Ran::of("broken", &folder, &[]);
    assert!(!found.passed, "{}", found.output);
    let seed = found.word_after("is broken, first at seed ");
    assert!(found.output.contains("shrunk from "), "{}", found.output);
    let file = found.word_after("repeat it:     QUORLOCK_REPLAY=");
    assert!(!found.story().is_empty());

    // With the file, the shrunk run happens twice: once to fail, and once more for the page.
    let again = Ran::of("broken", &folder, &[("QUORLOCK_REPLAY", file)]);
    assert!(!again.passed, "{}", again.output);
    assert_eq!(again.story(), found.story());
    assert!(!again.output.contains("shrunk from "), "{}", again.output);
    assert_eq!(again.word_after("worlds: "), "2");
    let note = "the run differs from the recorded one";
    assert!(!again.output.contains(note), "{}", again.output);
    let mended = Ran::of("mended", &folder, &[("QUORLOCK_REPLAY", file)]);
    assert!(mended.passed, "{}", mended.output);
    assert!(mended.output.contains(note), "{}", mended.output);
    assert_eq!(mended.word_after("worlds: "), "1");

    // With the seed, the whole run happens, and no run of another seed.
    let whole = Ran::of("broken", &folder, &[("QUORLOCK_SEED", seed)]);
    assert!(!whole.passed, "{}", whole.output);
    assert_eq!(whole.word_after("is broken, first at seed "), seed);
    assert_eq!(whole.story(), found.story());
    let mended = Ran::of("mended", &folder, &[("QUORLOCK_SEED", seed)]);
    assert!(mended.passed, "{}", mended.output);
    assert_eq!(mended.word_after("worlds: "), "1");

    let wrong = Ran::of("broken", &folder, &[("QUORLOCK_SEED", "many")]);
    let says = "QUORLOCK_SEED=many: use a number, as QUORLOCK_SEED=17";
    assert!(
        !wrong.passed && wrong.output.contains(says),
        "{}",
        wrong.output
    );
    let wrong = Ran::of("broken", &folder, &[("QUORLOCK_REPLAY", "nowhere.json")]);
    assert!(
        !wrong.passed && wrong.output.contains("nowhere.json: "),
        "{}",
        wrong.output
    );
}

/// Prints the number of worlds when it is dropped, also when the test panics.
struct Reported;

impl Drop for Reported {
    fn drop(&mut self) {
        println!("worlds: {}", WORLDS.load(Ordering::Relaxed));
    }
}
