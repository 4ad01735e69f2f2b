//! A shop that sells numbered lamps, from several processes, under a lock.

use quorlock::{AcquireError, Locks, Token};

/// The shop's record of how many lamps are left. The next lamp to sell has that number.
pub trait Stock {
    /// Error of a failed access.
    type Error;

    /// Returns how many lamps are left, for the holder of the lock with this token.
    fn left(&self, token: Token) -> impl Future<Output = Result<u32, Self::Error>>;

    /// Records how many lamps are left, for the holder of the lock with this token.
    fn set_left(&self, left: u32, token: Token) -> impl Future<Output = Result<(), Self::Error>>;
}

/// The shop's bank.
pub trait Bank {
    /// Error of a failed charge.
    type Error;

    /// Charges the buyer of a lamp.
    fn charge(&self, lamp: u32) -> impl Future<Output = Result<(), Self::Error>>;
}

/// One process of the shop.
#[derive(Debug)]
pub struct Till<S, B> {
    locks: Locks,
    stock: S,
    bank: B,
}

/// Why no lamp was sold.
#[derive(Debug)]
pub enum SellError<S, B> {
    /// The lock was not acquired.
    Lock(AcquireError),
    /// The lock was lost before the sale was recorded.
    Lost,
    /// There is no lamp left.
    SoldOut,
    /// The stock did not answer, or refused.
    Stock(S),
    /// The bank did not answer.
    Bank(B),
}

impl<S: Stock, B: Bank> Till<S, B> {
    /// Creates a till with the locks of its process, the stock and the bank.
    pub fn new(locks: Locks, stock: S, bank: B) -> Self {
        Till { locks, stock, bank }
    }

    /// Sells a lamp, and returns its number.
    ///
    /// # Errors
    /// Returns [`SellError`]. Unless no lamp is left, the sale may have been recorded, or may still be.
    pub async fn sell(&self) -> Result<u32, SellError<S::Error, B::Error>> {
        let guard = self.locks.lock("lamps").acquire().await;
        let guard = guard.map_err(SellError::Lock)?;
        let token = guard.fencing_token();
        let lamp = self.stock.left(token).await.map_err(SellError::Stock)?;
        if lamp == 0 {
            return Err(SellError::SoldOut);
        }
        self.bank.charge(lamp).await.map_err(SellError::Bank)?;
        if !guard.is_held() {
            return Err(SellError::Lost);
        }
        let written = self.stock.set_left(lamp - 1, token).await;
        written.map_err(SellError::Stock)?;
        Ok(lamp)
    }
}
