//! A small HTTP/1.1 client: one persistent connection, one request at a time, bodies with `Content-Length`. Cheaper than a general client,
//! so that the load generator takes less of the shared CPU.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Conn {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response, borrowed from its connection's buffer.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

impl Conn {
    pub(crate) async fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(8192) })
    }

    /// Sends a request and reads the whole response.
    ///
    /// # Errors
    /// Returns I/O errors, and `InvalidData` for a response without a `Content-Length`. The connection is unusable after an error.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Reply<'_>> {
        self.buffer.clear();
        self.stream.write_all(request).await?;
        let head = loop {
            self.fill().await?;
            if let Some(head) = Head::parse(&self.buffer)? {
                break head;
            }
        };
        let end = head.length + head.body;
        while self.buffer.len() < end {
            self.fill().await?;
        }
        Ok(Reply { status: head.status, body: &self.buffer[head.length..end] })
    }

    /// Sends `GET path`, with a bearer key unless it is empty.
    pub(crate) async fn get(&mut self, path: &str, key: &str) -> io::Result<Reply<'_>> {
        let auth = bearer(key);
        let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\n{auth}\r\n");
        self.exchange(request.as_bytes()).await
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Returns the `Authorization` header for `key`; empty without one.
pub(crate) fn bearer(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("Authorization: Bearer {key}\r\n") }
}

#[derive(Debug, PartialEq)]
struct Head {
    status: u16,
    /// Bytes of the head with its final empty line.
    length: usize,
    /// Bytes of the body.
    body: usize,
}

impl Head {
    /// Returns `None` while the head is incomplete.
    fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&bytes[..end]).map_err(|_| invalid("head is not text"))?;
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 "))
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or_else(|| invalid("not a status line"))?;
        let mut body = 0;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                body = value.trim().parse().map_err(|_| invalid("bad content-length"))?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(invalid("chunked responses are not understood"));
            }
        }
        Ok(Some(Self { status, length: end + 4, body }))
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_complete_with_its_empty_line() {
        let bytes = b"HTTP/1.1 202 Accepted\r\nX: y\r\ncontent-LENGTH: 7\r\n\r\n{\"a\":1}";
        assert_eq!(Head::parse(&bytes[..48]).unwrap(), None);
        let head = Head::parse(bytes).unwrap().unwrap();
        assert_eq!(head, Head { status: 202, length: bytes.len() - 7, body: 7 });
    }

    #[test]
    fn what_cannot_be_framed_is_refused() {
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n").is_err());
        assert!(Head::parse(b"SSH-2.0-x\r\n\r\n").is_err());
    }
}
