//! Services without conditional writes.

use quorlock::Locks;
use quorlock_store::Cause;
use quorlock_testbed::s3::S3;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};

use crate::databases::problem;

/// Answers every request as a service does that has the object, and looks at the conditions by `status`.
async fn serve(listener: TcpListener, status: fn(&str) -> &'static str) {
    while let Ok((stream, _)) = listener.accept().await {
        // One that is closed by the client has no further request.
        tokio::spawn(async move { answer(stream, status).await });
    }
}

async fn answer(stream: TcpStream, status: fn(&str) -> &'static str) -> Option<()> {
    let mut stream = BufStream::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = stream.read_line(&mut head).await.ok()?;
            (read != 0).then_some(())?;
        }
        let head = head.to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|it| it.strip_prefix("content-length: "));
        let mut sent = vec![0; length.map_or(0, |it| it.parse().unwrap())];
        stream.read_exact(&mut sent).await.ok()?;
        let (status, body) = match head.starts_with("get") {
            true => ("200 OK", "000000000000002a"),
            false => (status(&head), ""),
        };
        let length = body.len();
        let reply = format!(
            "HTTP/1.1 {status}\r\nETag: \"a\"\r\nLast-Modified: Mon, 30 Nov 2026 08:00:00 GMT\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(reply.as_bytes()).await.ok()?;
        stream.flush().await.ok()?;
    }
}

pub(crate) async fn a_service_that_ignores_a_condition_is_found_out(server: S3) {
    drop(server);
    let services: [(fn(&str) -> _, _); 4] = [
        (|_| "200 OK", "If-None-Match does not hold"),
        (
            |head| match head.contains("\r\nif-none-match: *") {
                true => "412 Precondition Failed",
                false => "200 OK",
            },
            "If-Match does not hold",
        ),
        (
            |head| match head.contains("\r\nif-match: ") {
                true => "412 Precondition Failed",
                false => "200 OK",
            },
            "If-None-Match does not hold",
        ),
        (|_| "501 Not Implemented", "501"),
    ];
    for (status, words) in services {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(serve(listener, status));
        let address = format!("s3://locks?endpoint=http://127.0.0.1:{port}");
        let error = Locks::connect(&address).await.unwrap_err();
        let (cause, said) = problem(error);
        assert_eq!(cause, Cause::Unsupported, "{said}");
        assert!(said.contains(words), "{said}");
        assert!(said.contains("conditional writes"), "{said}");
        serving.abort();
    }
}
