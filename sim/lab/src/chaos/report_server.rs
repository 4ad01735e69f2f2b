//! The server to which clients report. Each client process connects to it and introduces itself.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_local;

use super::clock;
use super::message::{ClientReport, ConductorReply, WorkerSettings};
use super::records::Records;
use quorlock_sim_world::history::Process;

/// The report server of one run.
#[derive(Debug)]
pub(super) struct ReportServer {
    port: u16,
    records: Rc<RefCell<Records>>,
    /// The processes that are connected, with the senders of their connections.
    present: Rc<RefCell<BTreeMap<Process, UnboundedSender<ConductorReply>>>>,
}

/// Returns the settings that are sent to a process when it connects.
type Introduction = Rc<dyn Fn(Process) -> WorkerSettings>;

impl ReportServer {
    pub(super) async fn open(
        records: Records,
        introduction: impl Fn(Process) -> WorkerSettings + 'static,
    ) -> std::io::Result<ReportServer> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let reports = ReportServer {
            port: listener.local_addr()?.port(),
            records: Rc::new(RefCell::new(records)),
            present: Rc::default(),
        };
        let (records, present) = (Rc::clone(&reports.records), Rc::clone(&reports.present));
        let introduction: Introduction = Rc::new(introduction);
        spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (records, present) = (Rc::clone(&records), Rc::clone(&present));
                let introduction = Rc::clone(&introduction);
                spawn_local(async move {
                    // A process that is killed may break the connection at any byte.
                    let _ = serve(stream, &records, &present, &*introduction).await;
                });
            }
        });
        Ok(reports)
    }

    /// Returns the port to which clients report.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn records(&self) -> std::cell::RefMut<'_, Records> {
        self.records.borrow_mut()
    }

    /// Sends a message to a client. Returns whether a process of the client is connected.
    pub(super) fn tell(&self, client: u16, told: ConductorReply) -> bool {
        let present = self.present.borrow();
        let mut processes = present.iter();
        let process = processes.find(|(process, _)| process.client == client);
        process.is_some_and(|(_, line)| line.send(told).is_ok())
    }

    /// Returns the number of connected processes.
    pub(super) fn present(&self) -> usize {
        self.present.borrow().len()
    }
}

async fn serve(
    stream: TcpStream,
    records: &RefCell<Records>,
    present: &RefCell<BTreeMap<Process, UnboundedSender<ConductorReply>>>,
    introduction: &dyn Fn(Process) -> WorkerSettings,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    let Ok(ClientReport::Hello(process)) = serde_json::from_str(&first) else {
        return Err(std::io::Error::other("the first line is not a greeting"));
    };
    let mut settings = serde_json::to_vec(&introduction(process))?;
    settings.push(b'\n');
    write.write_all(&settings).await?;
    let (line, told) = unbounded_channel();
    present.borrow_mut().insert(process, line.clone());
    spawn_local(answer(write, told));
    while let Ok(Some(text)) = lines.next_line().await {
        let Ok(said) = serde_json::from_str(&text) else {
            break;
        };
        let answer = records.borrow_mut().hear(process, said, clock::now());
        if let Some(answer) = answer {
            let _ = line.send(answer);
        }
    }
    present.borrow_mut().remove(&process);
    records.borrow_mut().gone(process, clock::now());
    Ok(())
}

async fn answer(mut write: OwnedWriteHalf, mut told: UnboundedReceiver<ConductorReply>) {
    while let Some(told) = told.recv().await {
        let Ok(mut line) = serde_json::to_vec(&told) else {
            return;
        };
        line.push(b'\n');
        if write.write_all(&line).await.is_err() {
            return;
        }
    }
}
