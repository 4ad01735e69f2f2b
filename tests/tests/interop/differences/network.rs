//! Differences if replies are lost.

use quorlock::ReleaseError;
use quorlock_testbed::proxy::Proxy;
use quorlock_testbed::wait::until;

use super::super::jvm::Jvm;
use super::super::mode::Mode;
use super::super::stage::{Stage, locks_at, servers};

/// Before this version, Redisson sends a call again if the reply does not arrive in time.
const SENT_ONCE_SINCE: (u32, u32) = (3, 37);

impl Stage {
    /// Returns a JVM whose network the test can break, with its lock. Its connections are established and its scripts
    /// loaded.
    async fn jvm_behind(&self, network: &Proxy) -> (Jvm, String) {
        let jvm = Jvm::start(self.version.number);
        let lock = format!("reentrant {} {}", self.name, network.address());
        for verb in ["acquire", "release"] {
            let done = jvm.ask("t", format!("{verb} {lock} 30000")).await;
            done.unwrap();
        }
        (jvm, lock)
    }
}

pub(super) async fn w2_an_acquisition_without_an_answer(stage: Stage) {
    let network = Proxy::to(&servers()[0]).await;
    let (jvm, lock) = stage.jvm_behind(&network).await;
    network.lose_replies();
    let (acquired, ()) = tokio::join!(jvm.ask("t", format!("acquire {lock} 30000")), async {
        // The first lost reply may belong to another request of Redisson.
        until("it was executed", || stage.count() == Some(1)).await;
        until("the answer is lost", || 0 < network.lost()).await;
        network.cut();
        network.carry_replies();
    });
    if stage.is_before(SENT_ONCE_SINCE) {
        acquired.unwrap();
        assert_eq!(stage.count(), Some(2));
        jvm.ask("t", format!("release {lock}")).await.unwrap();
    } else {
        assert_eq!(acquired.unwrap_err().class, "RedisResponseTimeoutException");
    }
    // No party holds the lock any more, but it stays locked.
    assert_eq!(stage.count(), Some(1));
    stage.rust(Mode::Reentrant).await.force_release().await;

    let ours = locks_at([network.address()]).await;
    network.lose_replies();
    let (lock, before) = (ours.lock(&stage.name), network.lost());
    let (acquired, ()) = tokio::join!(lock.acquire(), async {
        until("the answer is lost", || before < network.lost()).await;
        network.carry_replies();
        network.cut();
    });
    assert_eq!(stage.count(), Some(1));
    acquired.unwrap().release().await.unwrap();
    assert_eq!(stage.count(), None);
}

pub(super) async fn w3_a_release_without_an_answer(stage: Stage) {
    let network = Proxy::to(&servers()[0]).await;
    let (jvm, lock) = stage.jvm_behind(&network).await;
    let acquired = jvm.ask("t", format!("acquire {lock} 30000")).await;
    acquired.unwrap();
    network.lose_replies();
    let (released, ()) = tokio::join!(jvm.ask("t", format!("release {lock}")), async {
        until("it was executed", || stage.count().is_none()).await;
        until("the answer is lost", || 0 < network.lost()).await;
        network.cut();
        network.carry_replies();
    });
    let said = released.unwrap_err().class;
    if stage.is_before(SENT_ONCE_SINCE) {
        // The lock was released, but the holder receives the error that it did not hold it.
        assert_eq!(said, "IllegalMonitorStateException");
    } else {
        assert_eq!(said, "RedisResponseTimeoutException");
    }
    assert_eq!(stage.count(), None);

    let ours = locks_at([network.address()]).await;
    let guard = ours.lock(&stage.name).acquire().await.unwrap();
    network.lose_replies();
    let released = guard.release().await.unwrap_err();
    assert!(
        matches!(released, ReleaseError::Unconfirmed { .. }),
        "{released}"
    );
    network.carry_replies();
    assert_eq!(stage.count(), None);
}
