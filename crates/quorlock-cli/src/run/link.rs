//! The messages between wrapper and guardian: lines of text over a pair of sockets.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncRead, ReadBuf};
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
    /// The same socket, for writing. Tokio's handle writes nothing before its driver has run, and after the last
    /// message it does not run again.
    writer: StdStream,
    received: VecDeque<u8>,
    unsent: VecDeque<u8>,
}

impl Link {
    /// Returns the end of a connection. Must be called in a tokio runtime.
    pub(crate) fn new(stream: StdStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Link {
            writer: stream.try_clone()?,
            stream: UnixStream::from_std(stream)?,
            received: VecDeque::new(),
            unsent: VecDeque::new(),
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
            match self.writer.write(bytes) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// Polls for the next order; `None` when the wrapper has ended.
    pub(crate) fn poll_order(&mut self, cx: &mut Context<'_>) -> Poll<Option<Order>> {
        self.poll(cx, Order::parse)
    }

    /// Polls for the next report; `None` when the guardian has ended.
    pub(crate) fn poll_report(&mut self, cx: &mut Context<'_>) -> Poll<Option<Report>> {
        self.poll(cx, Report::parse)
    }

    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Poll<Option<T>> {
        loop {
            while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                if let Some(message) = parse(line.trim_end()) {
                    return Poll::Ready(Some(message));
                }
            }
            let mut bytes = [0; 512];
            let mut bytes = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(cx, &mut bytes) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !bytes.filled().is_empty() => {
                    self.received.extend(bytes.filled());
                }
                Poll::Ready(_) => return Poll::Ready(None),
            }
        }
    }
}

/// Sends a file descriptor to the other end, before any message.
pub(crate) fn hand_over(stream: &StdStream, file: impl AsFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    let byte = [io::IoSlice::new(b"\n")];
    sendmsg(stream, &byte, &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives the file descriptor.
pub(crate) fn take_over(stream: &StdStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [io::IoSliceMut::new(&mut byte)];
    recvmsg(stream, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    files
        .flatten()
        .next()
        .ok_or_else(|| io::Error::other("no file descriptor was received with the first byte"))
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
