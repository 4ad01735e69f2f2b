//! The port of a node. Every connection to it gets a session.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::connection;
use super::node::ServedNode;

/// Accepts connections until the node crashes.
pub(super) fn listen(node: &Rc<RefCell<ServedNode>>, listener: TcpListener, tasks: &LocalSet) {
    let this = Rc::clone(node);
    let accepting = tasks.spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            accept(&this, stream);
        }
    });
    node.borrow_mut().is_accepted_by(accepting.abort_handle());
}

fn accept(node: &Rc<RefCell<ServedNode>>, stream: TcpStream) {
    let session = node.borrow_mut().redis.process.open_session();
    let output = Rc::new(Notify::new());
    let serving = connection::serve(Rc::clone(node), session, Rc::clone(&output), stream);
    let task = tokio::task::spawn_local(serving).abort_handle();
    node.borrow_mut().connect(session, output, task);
}
