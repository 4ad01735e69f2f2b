//! Reads the report that a real server makes of its commands (`MONITOR`).

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use super::clock;
use super::report_server::ReportServer;

/// The time until the next connection to a server that is down.
const PAUSE: Duration = Duration::from_millis(20);

/// The longest line that is read, in bytes.
const LONGEST: usize = 1 << 20;

/// Connects to a server, and records from now on what it reports about queues. Connects again whenever the server was
/// down.
///
/// # Errors
/// Returns the error of the first connection.
pub(super) async fn follow(node: u16, port: u16, reports: Rc<ReportServer>) -> io::Result<()> {
    let first = connect(port).await?;
    spawn_local(async move {
        let mut next = Some(first);
        loop {
            if let Some(lines) = next.take() {
                read(node, lines, &reports).await;
                reports.records().queues().interrupted(node);
            }
            clock::sleep(PAUSE).await;
            next = connect(port).await.ok();
        }
    });
    Ok(())
}

/// Orders a report. Returns its lines from the answer to the order on.
async fn connect(port: u16) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"MONITOR\r\n").await?;
    let mut lines = BufReader::new(stream);
    let mut answer = String::new();
    lines.read_line(&mut answer).await?;
    if answer.starts_with("+OK") {
        return Ok(lines);
    }
    Err(io::Error::other(answer))
}

async fn read(node: u16, mut lines: BufReader<TcpStream>, reports: &ReportServer) {
    let mut line = Vec::new();
    while let Ok(length) = lines.read_until(b'\n', &mut line).await {
        if length == 0 || LONGEST < length {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let now = clock::now();
        reports.records().reported(node, now, text.trim_end());
        line.clear();
    }
}
