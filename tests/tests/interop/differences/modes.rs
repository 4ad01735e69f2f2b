//! Locks of several kinds on one name.

use quorlock::{AcquireError, Locks};

use super::super::mode::Mode;
use super::super::party::Released;
use super::super::stage::{LONG, Stage, locks_at};

pub(super) async fn w4_two_kinds_of_lock_on_one_name(stage: Stage) {
    let ours = locks_at(Mode::Write.addresses()).await;
    let (mut plain, mut write) = (
        stage.jvm(Mode::Reentrant).await,
        stage.jvm(Mode::Write).await,
    );
    plain.acquire(LONG).await;
    assert_refuses_to_read_and_write(&ours, &stage).await;
    assert!(write.try_acquire(LONG).await);
    // This turns the plain lock into a reader's.
    assert_eq!(write.release().await, Released::Yes);
    assert_eq!(plain.release().await, Released::Yes);
    stage.until_free().await;

    // Their reader enters a plain lock of ours in the same way. Our reader does not enter theirs.
    let mut plain = stage.rust(Mode::Reentrant).await;
    plain.acquire(LONG).await;
    assert!(write.try_acquire(LONG).await);
    plain.release().await;
    let refused = ours.lock(&stage.name).try_acquire().await.unwrap_err();
    assert!(
        matches!(refused, AcquireError::OtherMode { .. }),
        "{refused}"
    );
    assert_eq!(write.release().await, Released::Yes);
}

async fn assert_refuses_to_read_and_write(ours: &Locks, stage: &Stage) {
    for lock in [ours.read(&stage.name), ours.write(&stage.name)] {
        let refused = lock.try_acquire().await.unwrap_err();
        assert!(
            matches!(refused, AcquireError::OtherMode { .. }),
            "{refused}"
        );
    }
}
