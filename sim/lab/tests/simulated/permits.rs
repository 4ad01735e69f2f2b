//! The permits of a semaphore under faults.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use quorlock_sim::context::Context;
use quorlock_sim::property_test::PropertyTest;
use quorlock_sim::{always, sometimes};

const PERMITS: usize = 2;

/// Faults that no holder sleeps through: one that is paused cannot stop when its permit ends.
const AWAKE: &str =
    "cut,loss,delay,hold-back,duplicate,reorder,reset,swallow,crash-client,cancel,pause-node";

#[derive(Default)]
struct Printers {
    at_work: Cell<usize>,
    printed: RefCell<BTreeMap<u16, u32>>,
}

/// A client that prints, until it is dropped.
struct Printing(Rc<Printers>);

impl Printing {
    fn begin(printers: &Rc<Printers>) -> Self {
        printers.at_work.set(printers.at_work.get() + 1);
        Printing(Rc::clone(printers))
    }
}

impl Drop for Printing {
    fn drop(&mut self) {
        self.0.at_work.set(self.0.at_work.get() - 1);
    }
}

/// Prints again and again, with one of two permits.
async fn print(ctx: Context, printers: Rc<Printers>) {
    let semaphore = ctx.locks().semaphore("printers", PERMITS);
    loop {
        ctx.sleep(Duration::from_millis(ctx.random(0, 5))).await;
        // Every fourth one does not wait.
        let guard = match ctx.random(0, 3) {
            0 => semaphore.try_acquire().await,
            _ => semaphore.acquire().await.map(Some),
        };
        let Ok(Some(guard)) = guard else {
            continue;
        };
        let work = async {
            let _printing = Printing::begin(&printers);
            let many = printers.at_work.get();
            always!(
                many <= PERMITS,
                "there are no more holders than permits",
                "{many} print"
            );
            sometimes!(many == PERMITS, "all permits are held");
            ctx.sleep(Duration::from_millis(ctx.random(1, 20))).await;
        };
        if guard.while_held(async |_| work.await).await.is_ok() {
            let mut printed = printers.printed.borrow_mut();
            *printed.entry(ctx.client()).or_default() += 1;
        }
    }
}

fn printing(name: &str, seeds: u64, nodes: u16) -> PropertyTest<Printers> {
    let failures = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    PropertyTest::new(name)
        .seeds(seeds)
        .nodes(nodes)
        .clients(5)
        .world(Printers::default)
        .failures_in(failures)
}

#[test]
fn under_faults_there_are_no_more_holders_than_permits() {
    for (name, seeds, nodes) in [("permits-of-one", 150, 1), ("permits-of-three", 100, 3)] {
        let found = printing(name, seeds, nodes).faults(AWAKE).check(print);
        found.unwrap_or_else(|found| panic!("{found}"));
    }
}

/// Each client waits for both permits and is woken by either. 5 clients share 2 permits for 4 s, each time for 10 ms on average:
/// that is some hundred times for each of them.
#[test]
fn no_client_starves() {
    for (name, seeds, nodes) in [("turns-at-one", 20, 1), ("turns-at-three", 15, 3)] {
        let test = printing(name, seeds, nodes).lasting(Duration::from_secs(4));
        let test = test.faults("none").finally(|printers: &Printers| {
            let printed = printers.printed.borrow();
            let least = printed.values().min().copied().unwrap_or(0);
            always!(
                printed.len() == 5 && 10 <= least,
                "each client prints",
                "{printed:?}"
            );
        });
        let found = test.check(print);
        found.unwrap_or_else(|found| panic!("{found}"));
    }
}
