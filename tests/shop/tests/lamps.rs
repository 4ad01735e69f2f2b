//! Tests the shop under the faults that break locks.

#![expect(clippy::print_stdout, reason = "what is found is shown by --nocapture")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use quorlock::Token;
use quorlock_shop::{Bank, SellError, Stock, Till};
use quorlock_sim::context::Context;
use quorlock_sim::resource::{
    CallError, KeyValueClient, KeyValueStore, Service, ServiceClient, StoreError,
};
use quorlock_sim::{always, mark, sometimes};

/// What all tills share: the stock, the bank, and which lamps were sold.
struct Shop {
    stock: KeyValueStore<u32>,
    bank: Service<u32, ()>,
    sold: RefCell<BTreeSet<u32>>,
}

impl Default for Shop {
    fn default() -> Self {
        Shop {
            stock: KeyValueStore::new("stock").with("lamps", 500),
            bank: Service::new("bank", |_lamp| ()),
            sold: RefCell::default(),
        }
    }
}

/// The stock, in a store that checks the token of the lock in each request.
struct Fenced(KeyValueClient<u32>);

impl Stock for Fenced {
    type Error = StoreError;

    async fn left(&self, token: Token) -> Result<u32, StoreError> {
        let left = self.0.get_fenced("lamps", token).await?;
        Ok(left.unwrap_or(0))
    }

    async fn set_left(&self, left: u32, token: Token) -> Result<(), StoreError> {
        self.0.put_fenced("lamps", left, token).await.map(|_| ())
    }
}

/// The bank, which answers slowly over its own network.
struct Charges(ServiceClient<u32, ()>, Context);

impl Bank for Charges {
    type Error = CallError;

    async fn charge(&self, lamp: u32) -> Result<(), CallError> {
        self.1.sleep(Duration::from_millis(40)).await;
        self.0.call(lamp).await
    }
}

/// Sells again and again.
async fn sell<S: Stock>(ctx: Context, shop: Rc<Shop>, stock: S) {
    let bank = Charges(shop.bank.client(&ctx), ctx.clone());
    let till = Till::new(ctx.locks().clone(), stock, bank);
    loop {
        ctx.sleep(Duration::from_millis(5)).await;
        let outcome = till.sell().await;
        sometimes!(matches!(outcome, Err(SellError::Lost)), "the lock is lost");
        if let Ok(lamp) = outcome {
            mark!("sells lamp {lamp}");
            let is_first = shop.sold.borrow_mut().insert(lamp);
            always!(
                is_first,
                "no lamp is sold twice",
                "lamp {lamp} was sold before"
            );
        }
    }
}

#[quorlock_sim::test(
    seeds = 200,
    faults = "inside",
    clients = 3,
    properties = ["no lamp is sold twice", "the lock is lost"]
)]
async fn no_lamp_is_sold_twice(ctx: Context, shop: Rc<Shop>) {
    let stock = Fenced(shop.stock.client(&ctx));
    sell(ctx, shop, stock).await;
}

mod broken {
    //! Variants of the shop with one mistake each. The tests check that the mistake is found.

    use quorlock_sim::property_test::PropertyTest;

    use super::*;

    /// Reads with the token, and writes without it.
    struct WriteUnfenced(KeyValueClient<u32>);

    impl Stock for WriteUnfenced {
        type Error = StoreError;

        async fn left(&self, token: Token) -> Result<u32, StoreError> {
            let left = self.0.get_fenced("lamps", token).await?;
            Ok(left.unwrap_or(0))
        }

        async fn set_left(&self, left: u32, _token: Token) -> Result<(), StoreError> {
            self.0.put("lamps", left).await.map(|_| ())
        }
    }

    /// Writes with the token, and reads without it.
    struct ReadUnfenced(KeyValueClient<u32>);

    impl Stock for ReadUnfenced {
        type Error = StoreError;

        async fn left(&self, _token: Token) -> Result<u32, StoreError> {
            let left = self.0.get("lamps").await?;
            Ok(left.unwrap_or(0))
        }

        async fn set_left(&self, left: u32, token: Token) -> Result<(), StoreError> {
            self.0.put_fenced("lamps", left, token).await.map(|_| ())
        }
    }

    fn folder() -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("shop")
    }

    fn test(name: &str) -> PropertyTest<Shop> {
        let test = PropertyTest::at(quorlock_sim::property_test::CodeLocation::new(
            "quorlock-shop",
            module_path!(),
            name,
        ))
        .seeds(200)
        .failures_in(folder());
        test.world(Shop::default)
    }

    #[test]
    fn a_write_without_its_token_is_found() {
        let found = test("a_write_without_its_token_is_found").check(
            async |ctx: Context, shop: Rc<Shop>| {
                let stock = WriteUnfenced(shop.stock.client(&ctx));
                sell(ctx, shop, stock).await;
            },
        );
        let found = found.unwrap_err();
        println!("{found}");
        assert_eq!(found.property(), Some("no lamp is sold twice"));
        let folder = folder().display().to_string();
        super::page::shows(&found.to_string().replace(&folder, "failures"));
    }

    #[test]
    fn a_read_without_its_token_is_found() {
        let found = test("a_read_without_its_token_is_found").check(
            async |ctx: Context, shop: Rc<Shop>| {
                let stock = ReadUnfenced(shop.stock.client(&ctx));
                sell(ctx, shop, stock).await;
            },
        );
        let found = found.unwrap_err();
        println!("{found}");
        assert_eq!(found.property(), Some("no lamp is sold twice"));
    }
}

mod page {
    //! The chapter "Test your own code" takes its listings from this file.

    const PAGE: &str = include_str!("../../../docs/src/testing.md");
    const SOURCES: [&str; 2] = [include_str!("../src/lib.rs"), include_str!("lamps.rs")];

    /// Returns the blocks of the page that begin with this text.
    fn blocks(begin: &str) -> Vec<&'static str> {
        let parts = PAGE.split(begin).skip(1);
        parts
            .filter_map(|part| part.split("\n```").next())
            .collect()
    }

    #[test]
    fn every_listing_stands_in_the_shop() {
        let listings = blocks("```rust\n");
        assert_eq!(listings.len(), 3);
        for listing in listings {
            let shown = listing.lines().filter(|line| !line.starts_with("# "));
            let shown: Vec<&str> = shown.collect();
            let shown = shown.join("\n");
            let is_there = SOURCES.iter().any(|source| source.contains(&shown));
            assert!(is_there, "{shown}");
        }
    }

    /// Removes numbers: seeds and times change with the simulator.
    fn masked(text: &str) -> String {
        let mut masked = String::new();
        for character in text.chars() {
            match character {
                '0'..='9' if masked.ends_with('#') => {}
                '0'..='9' => masked.push('#'),
                other => masked.push(other),
            }
        }
        masked.replace("faults", "fault")
    }

    /// Checks that the page shows this failure, except for the story in its middle, which belongs to another seed.
    pub(super) fn shows(message: &str) {
        let mut all = blocks("```text\n").into_iter();
        let shown = all.find(|block| block.contains("(always) is broken"));
        let shown = shown.expect("the failure");
        let frame = |text: &str| {
            let lines: Vec<String> = text.lines().map(masked).collect();
            let is_story = |line: &&String| line.starts_with("  ");
            let frame = lines.iter().filter(|line| !is_story(line)).cloned();
            frame.collect::<Vec<String>>()
        };
        assert_eq!(frame(shown), frame(message));
    }
}
