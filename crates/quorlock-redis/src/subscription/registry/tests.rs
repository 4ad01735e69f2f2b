//! Tests listeners that come and go while the server is sent changes.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[derive(Default)]
struct Ear {
    lives: AtomicUsize,
    wakes: AtomicUsize,
}

impl Listener for Ear {
    fn live(&self) {
        self.lives.fetch_add(1, Ordering::Relaxed);
    }

    fn wake(&self, _: Wake) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }
}

impl Ear {
    fn heard(&self) -> (usize, usize) {
        (
            self.lives.load(Ordering::Relaxed),
            self.wakes.load(Ordering::Relaxed),
        )
    }
}

fn add(registry: &Registry, channel: &str, ear: &Arc<Ear>) -> u64 {
    let listener: Arc<dyn Listener> = ear.clone();
    registry.add(&channel.as_bytes().into(), &listener).number
}

fn order(registry: &Registry) -> (&'static str, Vec<Channel>) {
    match registry.next_order(2) {
        Some(Order::Subscribe(channels)) => ("subscribe", channels),
        Some(Order::Unsubscribe(channels)) => ("unsubscribe", channels),
        None => ("nothing", Vec::new()),
    }
}

#[test]
fn listeners_of_one_channel_share_one_subscription() {
    let registry = Registry::default();
    let (a, b) = (Arc::new(Ear::default()), Arc::new(Ear::default()));
    let first = add(&registry, "x", &a);
    let second = add(&registry, "x", &b);
    assert_eq!(order(&registry), ("subscribe", vec![(*b"x").into()]));
    assert_eq!(order(&registry).0, "nothing");
    registry.confirmed(&[(*b"x").into()]);
    registry.wake(b"x", Wake::Unlocked);
    registry.wake(b"y", Wake::Unlocked);
    assert_eq!((a.heard(), b.heard()), ((1, 1), (1, 1)));
    registry.remove(&(*b"x").into(), first);
    assert_eq!(order(&registry).0, "nothing");
    registry.remove(&(*b"x").into(), second);
    assert_eq!(order(&registry), ("unsubscribe", vec![(*b"x").into()]));
    assert!(registry.is_idle());
}

#[test]
fn a_listener_dropped_before_the_server_hears_of_it_leaves_no_trace() {
    let registry = Registry::default();
    let number = add(&registry, "x", &Arc::default());
    registry.remove(&(*b"x").into(), number);
    assert_eq!(order(&registry).0, "nothing");
    assert!(registry.is_idle());
}

#[test]
fn a_listener_dropped_before_the_confirmation_is_unsubscribed_after_it() {
    let registry = Registry::default();
    let number = add(&registry, "x", &Arc::default());
    assert_eq!(order(&registry).0, "subscribe");
    registry.remove(&(*b"x").into(), number);
    assert_eq!(order(&registry).0, "nothing");
    registry.confirmed(&[(*b"x").into()]);
    assert_eq!(order(&registry).0, "unsubscribe");
    assert!(registry.is_idle());
}

#[test]
fn a_listener_that_comes_while_the_channel_is_left_is_subscribed_anew() {
    let registry = Registry::default();
    let ear = Arc::new(Ear::default());
    let number = add(&registry, "x", &ear);
    order(&registry);
    registry.confirmed(&[(*b"x").into()]);
    registry.remove(&(*b"x").into(), number);
    assert_eq!(order(&registry).0, "unsubscribe");
    add(&registry, "x", &ear);
    assert_eq!(order(&registry).0, "subscribe");
}

#[test]
fn after_a_gap_everything_is_subscribed_again() {
    let registry = Registry::default();
    let ear = Arc::new(Ear::default());
    for channel in ["x", "y", "z"] {
        add(&registry, channel, &ear);
    }
    assert_eq!(order(&registry).1.len(), 2);
    registry.confirmed(&[(*b"x").into(), (*b"y").into()]);
    assert_eq!(order(&registry).1.len(), 1);
    registry.lock().forget();
    assert_eq!(order(&registry).1.len(), 2);
    registry.confirmed(&[(*b"x").into(), (*b"y").into()]);
    assert_eq!(order(&registry).1.len(), 1);
    registry.confirmed(&[(*b"z").into()]);
    assert_eq!(ear.heard(), (5, 0));
}

#[test]
fn joining_goes_before_leaving() {
    let registry = Registry::default();
    let number = add(&registry, "a", &Arc::default());
    order(&registry);
    registry.confirmed(&[(*b"a").into()]);
    registry.remove(&(*b"a").into(), number);
    add(&registry, "b", &Arc::default());
    assert_eq!(order(&registry), ("subscribe", vec![(*b"b").into()]));
    assert_eq!(order(&registry), ("unsubscribe", vec![(*b"a").into()]));
    assert_eq!(order(&registry).0, "nothing");
}

#[test]
fn a_session_is_started_once_and_after_its_end_again() {
    let registry = Arc::new(Registry::default());
    let listener: Arc<dyn Listener> = Arc::new(Ear::default());
    let first = registry.add(&(*b"x").into(), &listener);
    let number = first.new_session.unwrap();
    assert!(
        registry
            .add(&(*b"x").into(), &listener)
            .new_session
            .is_none()
    );
    let guard = |number| SessionGuard {
        registry: Arc::clone(&registry),
        number,
    };
    let ended = guard(number);
    assert!(!ended.is_over());
    drop(ended);
    let next = registry
        .add(&(*b"x").into(), &listener)
        .new_session
        .unwrap();
    drop(guard(number));
    assert!(
        registry
            .add(&(*b"x").into(), &listener)
            .new_session
            .is_none()
    );
    drop(guard(next));
    assert!(
        registry
            .add(&(*b"x").into(), &listener)
            .new_session
            .is_some()
    );
}

#[test]
fn only_subscribed_channels_with_listeners_are_subscribed_again() {
    let registry = Registry::default();
    let ear = Arc::new(Ear::default());
    let [live, asked, left, none] = [*b"l", *b"a", *b"e", *b"n"].map(Channel::from);
    add(&registry, "l", &ear);
    let number = add(&registry, "e", &Arc::default());
    order(&registry);
    registry.confirmed(&[Arc::clone(&live), Arc::clone(&left)]);
    registry.remove(&left, number);
    add(&registry, "a", &Arc::default());
    assert_eq!(order(&registry), ("subscribe", vec![Arc::clone(&asked)]));
    let all = vec![Arc::clone(&live), asked, left, none];
    assert_eq!(registry.renew(all.clone()), [Arc::clone(&live)]);
    assert!(!registry.is_live(&live));
    assert_eq!(registry.renew(all), []);
    registry.confirmed(&[live]);
    assert_eq!(ear.heard(), (2, 0), "the listener checks again");
}

#[test]
fn a_subscription_that_the_server_ends_is_reported_once() {
    let registry = Registry::default();
    let number = add(&registry, "x", &Arc::default());
    assert!(!registry.part(b"x"), "it was not requested");
    order(&registry);
    registry.confirmed(&[(*b"x").into()]);
    assert!(registry.part(b"x"));
    assert_eq!(registry.take_parted(), BTreeSet::from([(*b"x").into()]));
    assert_eq!(registry.take_parted(), BTreeSet::new());
    registry.remove(&(*b"x").into(), number);
    assert_eq!(order(&registry).0, "unsubscribe");
    assert!(!registry.part(b"x"), "this is the reply");
}
