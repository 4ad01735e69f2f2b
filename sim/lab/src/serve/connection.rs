//! Connections: bytes from the client go to the server, and the output of the server goes back.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

use super::node::ServedNode;
use super::time;
use redis_sim::SessionId;

/// Serves a connection until either side closes it.
pub(super) async fn serve(
    node: Rc<RefCell<ServedNode>>,
    session: SessionId,
    output: Rc<Notify>,
    stream: TcpStream,
) {
    // Answers are small and must not wait for each other.
    let _ = stream.set_nodelay(true);
    let (from, to) = stream.into_split();
    let mut reading = pin!(read(&node, session, from));
    let mut writing = pin!(write(&node, session, &output, to));
    std::future::poll_fn(|cx| {
        let (read, written) = (reading.as_mut().poll(cx), writing.as_mut().poll(cx));
        if read.is_ready() || written.is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
    node.borrow_mut().forget(session);
}

/// Passes bytes on until the client closes the connection.
async fn read(node: &RefCell<ServedNode>, session: SessionId, mut from: OwnedReadHalf) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(len @ 1..) = from.read(&mut bytes).await {
        pauses(node).await;
        node.borrow_mut()
            .receive(session, bytes.get(..len).unwrap_or_default());
    }
}

/// Sends output until the server closes the connection or the client no longer reads.
async fn write(
    node: &RefCell<ServedNode>,
    session: SessionId,
    output: &Notify,
    mut to: OwnedWriteHalf,
) {
    loop {
        output.notified().await;
        pauses(node).await;
        let delay = node.borrow().delay();
        if !delay.is_zero() {
            time::sleep_until(time::now() + delay).await;
        }
        let (bytes, is_last) = {
            let server = &mut node.borrow_mut().redis.process;
            (server.take_output(session), server.is_closing(session))
        };
        if to.write_all(&bytes).await.is_err() || is_last {
            return;
        }
    }
}

/// Waits while the node is paused.
async fn pauses(node: &RefCell<ServedNode>) {
    let mut pauses = node.borrow().goes_on();
    // The sender still exists, because the node owns it.
    let _ = pauses.wait_for(|pauses| *pauses == 0).await;
}
