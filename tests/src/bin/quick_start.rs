//! The program of the README, word for word. A test runs it with a server and without one.

use quorlock::Locks;

async fn ship(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let locks = Locks::connect(address).await?; // one server; a majority: Locks::quorum([a, b, c])
    let guard = locks.lock("orders/42").acquire().await?; // waits while another client holds the lock
    println!("locked, with fencing token {}", guard.fencing_token());
    guard.release().await?; // an error says that the lock had been lost before
    Ok(())
}

#[tokio::main]
async fn main() {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or("redis://127.0.0.1/".into());
    if let Err(error) = ship(&address).await {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
