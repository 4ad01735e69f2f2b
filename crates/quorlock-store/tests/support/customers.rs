//! Processes that buy in a shop, one of which stands still in the middle.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The first argument of a process that buys.
pub(crate) const BUY: &str = "buy";

struct Customer {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Customer {
    /// Starts a process, and waits until it has read the stock.
    fn start(address: &str, sale: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([BUY, address, sale]).stdin(Stdio::piped());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut customer = Customer { process, lines };
        assert!(customer.line().contains("pieces are left: buy one?"));
        customer
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn signal(&self, signal: &str) {
        let words = ["-c", "kill $0 $1", signal, &self.process.id().to_string()];
        let sent = Command::new("sh").args(words).status();
        assert!(sent.unwrap().success());
    }

    /// Lets the process buy. Returns what it said.
    fn buy(mut self) -> Vec<String> {
        writeln!(self.process.stdin.take().unwrap()).unwrap();
        let said = self.lines.by_ref().map(Result::unwrap).collect();
        assert!(self.process.wait().unwrap().success());
        said
    }
}

impl Drop for Customer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Three processes buy a piece each. The first is stopped after it has read the stock, until the others have bought. Returns
/// what it said in the end.
pub(crate) async fn three_buy(address: &str, sale: &'static str) -> Vec<String> {
    let first = Customer::start(address, sale);
    first.signal("-STOP");
    for _ in 0..2 {
        let address = address.to_owned();
        let other = move || Customer::start(&address, sale).buy();
        let said = tokio::task::spawn_blocking(other).await.unwrap();
        assert!(said.last().unwrap().starts_with("> bought"), "{said:?}");
    }
    first.signal("-CONT");
    tokio::task::spawn_blocking(|| first.buy()).await.unwrap()
}

/// What the first one says if its sale checks its hold in.
pub(crate) const REFUSED: &str =
    "> stock/7 is not held any more: nothing was written, and the sale begins again";
