//! The shop under the faults that break locks.

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

/// The stock in a store that is asked with the token of the lock, each time.
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

/// The bank, behind a network of its own.
struct Charges(ServiceClient<u32, ()>);

impl Bank for Charges {
    type Error = CallError;

    async fn charge(&self, lamp: u32) -> Result<(), CallError> {
        self.0.call(lamp).await
    }
}

/// Sells again and again.
async fn sell<S: Stock>(ctx: Context, shop: Rc<Shop>, stock: S) {
    let bank = Charges(shop.bank.client(&ctx));
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
    //! The same shop with a mistake each: that it is found is what is tested.

    use quorlock_sim::property_test::PropertyTest;

    use super::*;

    /// The store is asked with the token, and written without.
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

    /// The store is written with the token, and read without.
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

    fn test(name: &str) -> PropertyTest<Shop> {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("shop");
        let test = PropertyTest::at(quorlock_sim::property_test::Site::new(
            "quorlock-shop",
            module_path!(),
            name,
        ))
        .seeds(200)
        .failures_in(folder);
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
