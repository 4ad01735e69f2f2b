//! The messages between wrapper and guardian: lines of text over a pair of sockets.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::net::UnixStream;

use super::clock::Moment;

/// A message of the wrapper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// The lock is valid until this time.
    Until(Moment),
    /// The lock is lost.
    Lost,
    /// Send this signal to the group.
    Signal(i32),
}

/// A message of the guardian.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Report {
    /// The command runs, in a process group with this number.
    Started(i32),
    /// The command was stopped by this signal.
    Stopped(i32),
    /// The command was told to end, because the lock was not renewed in time.
    Ending,
    /// The command has ended, but processes of its group have not; they are being ended.
    LeftOthers,
    /// The command ended with this code, and nothing is left of its group.
    Exited(i32),
    /// The command was ended by this signal, and nothing is left of its group.
    Killed(i32),
    /// The command was not started, because too little was left of the validity.
    TooLate,
    /// The command could not be started.
    Failed,
    /// The group of the command could not be ended.
    Survives,
}

impl Order {
    fn line(self) -> String {
        match self {
            Order::Until(moment) => format!("until {}\n", moment.as_nanos()),
            Order::Lost => "lost\n".into(),
            Order::Signal(signal) => format!("signal {signal}\n"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "until" => Some(Order::Until(Moment::of_nanos(number.parse().ok()?))),
            "lost" => Some(Order::Lost),
            "signal" => Some(Order::Signal(number.parse().ok()?)),
            _ => None,
        }
    }
}

impl Report {
    fn line(self) -> String {
        match self {
            Report::Started(group) => format!("started {group}\n"),
            Report::Stopped(signal) => format!("stopped {signal}\n"),
            Report::Ending => "ending\n".into(),
            Report::LeftOthers => "left-others\n".into(),
            Report::Exited(code) => format!("exited {code}\n"),
            Report::Killed(signal) => format!("killed {signal}\n"),
            Report::TooLate => "too-late\n".into(),
            Report::Failed => "failed\n".into(),
            Report::Survives => "survives\n".into(),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "started" => Some(Report::Started(number.parse().ok()?)),
            "stopped" => Some(Report::Stopped(number.parse().ok()?)),
            "ending" => Some(Report::Ending),
            "left-others" => Some(Report::LeftOthers),
            "exited" => Some(Report::Exited(number.parse().ok()?)),
            "killed" => Some(Report::Killed(number.parse().ok()?)),
            "too-late" => Some(Report::TooLate),
            "failed" => Some(Report::Failed),
            "survives" => Some(Report::Survives),
            _ => None,
        }
    }
}

/// One end of the connection. It never blocks until the other end reads, because that process may be stopped.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    /// The same socket. Tokio's handle reads and writes nothing before its driver has run: after the last message it
    /// does not run again, and in a process that was stopped it has not run since.
    socket: StdStream,
    received: VecDeque<u8>,
    unsent: VecDeque<u8>,
    is_closed: bool,
}

impl Link {
    /// Returns the end of a connection. Must be called in a tokio runtime.
    pub(crate) fn new(stream: StdStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Link {
            socket: stream.try_clone()?,
            stream: UnixStream::from_std(stream)?,
            received: VecDeque::new(),
            unsent: VecDeque::new(),
            is_closed: false,
        })
    }

    pub(crate) fn order(&mut self, order: Order) {
        self.unsent.extend(order.line().bytes());
        self.flush();
    }

    pub(crate) fn report(&mut self, report: Report) {
        self.unsent.extend(report.line().bytes());
        self.flush();
    }

    /// Sends as much as possible. Nothing can be sent to a process that has ended; the next read from it shows that it
    /// has.
    pub(crate) fn flush(&mut self) {
        while !self.unsent.is_empty() {
            let bytes = self.unsent.make_contiguous();
            match self.socket.write(bytes) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// Returns all orders that the wrapper has sent by now.
    pub(crate) fn orders(&mut self) -> Vec<Order> {
        let mut bytes = [0; 512];
        while !self.is_closed {
            match self.socket.read(&mut bytes) {
                Ok(0) => self.is_closed = true,
                Ok(read) => self.received.extend(bytes.iter().take(read)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.is_closed = true,
            }
        }
        std::iter::from_fn(|| self.next_message(Order::parse)).collect()
    }

    /// Returns whether the other process has ended, and all that it sent was received.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Polls until something was received, or the other process has ended.
    pub(crate) fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; 512];
        let mut bytes = ReadBuf::new(&mut bytes);
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut bytes));
        self.received.extend(bytes.filled());
        self.is_closed = read.is_err() || bytes.filled().is_empty();
        Poll::Ready(())
    }

    /// Polls for the next report; `None` when the guardian has ended.
    pub(crate) fn poll_report(&mut self, cx: &mut Context<'_>) -> Poll<Option<Report>> {
        loop {
            if let Some(report) = self.next_message(Report::parse) {
                return Poll::Ready(Some(report));
            }
            if self.is_closed {
                return Poll::Ready(None);
            }
            ready!(self.poll_received(cx));
        }
    }

    /// Removes and returns the next message that was received and is understood.
    fn next_message<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if let Some(message) = parse(line.trim_end()) {
                return Some(message);
            }
        }
        None
    }
}

/// Sends file descriptors to the other end, before any message.
pub(crate) fn hand_over(stream: &StdStream, files: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let byte = [io::IoSlice::new(b"\n")];
    sendmsg(stream, &byte, &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives the file descriptors.
pub(crate) fn take_over(stream: &StdStream) -> io::Result<[OwnedFd; 2]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [io::IoSliceMut::new(&mut byte)];
    recvmsg(stream, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let mut files = files.flatten();
    match (files.next(), files.next()) {
        (Some(one), Some(other)) => Ok([one, other]),
        _ => Err(io::Error::other(
            "no file descriptors were received with the first byte",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_end_says_the_other_understands() {
        for order in [
            Order::Until(Moment::of_nanos(1_234_567_890_123)),
            Order::Lost,
            Order::Signal(15),
        ] {
            assert_eq!(Order::parse(order.line().trim_end()), Some(order));
        }
        for report in [
            Report::Started(4711),
            Report::Stopped(20),
            Report::Ending,
            Report::LeftOthers,
            Report::Exited(7),
            Report::Killed(9),
            Report::TooLate,
            Report::Failed,
            Report::Survives,
        ] {
            assert_eq!(Report::parse(report.line().trim_end()), Some(report));
        }
    }
}
