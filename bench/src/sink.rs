//! An SMTP server that counts messages. It stores only how often it received each one, identified by the token in its body; it accepts
//! everything and responds as fast as it can.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::counts::{Counts, find};

/// A running sink. Stops with its runtime.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) addr: SocketAddr,
    pub(crate) counts: Counts,
}

impl Sink {
    /// Listens on a free port.
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let sink = Self { addr: listener.local_addr()?, counts: Counts::default() };
        let counts = sink.counts.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let counts = counts.clone();
                // A closed connection is not an error of the sink.
                tokio::spawn(async move { session(stream, &counts).await.ok() });
            }
        });
        Ok(sink)
    }
}

/// Implements RFC 5321 with PIPELINING (RFC 2920): responds to all available commands in one write.
async fn session(mut stream: TcpStream, counts: &Counts) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(b"220 sink ESMTP\r\n").await?;
    let (mut input, mut output, mut in_data) = (Vec::with_capacity(8192), Vec::new(), false);
    while stream.read_buf(&mut input).await? > 0 {
        let mut start = 0;
        let mut quit = false;
        while let Some(length) = unit(&input[start..], in_data) {
            let bytes = &input[start..start + length];
            if in_data {
                counts.add(bytes);
                in_data = false;
                output.extend_from_slice(b"250 2.0.0 taken\r\n");
            } else {
                let reply = answer(bytes);
                in_data = reply.starts_with("354");
                quit |= reply.starts_with("221");
                output.extend_from_slice(reply.as_bytes());
            }
            start += length;
        }
        input.drain(..start);
        stream.write_all(&output).await?;
        output.clear();
        if quit {
            break;
        }
    }
    Ok(())
}

/// Returns the length of the command or email at the start of `input`, if it is complete.
fn unit(input: &[u8], in_data: bool) -> Option<usize> {
    if !in_data {
        return Some(input.iter().position(|&b| b == b'\n')? + 1);
    }
    if input.starts_with(b".\r\n") {
        return Some(3);
    }
    Some(find(input, b"\r\n.\r\n")? + 5)
}

fn answer(command: &[u8]) -> &'static str {
    let verb: Vec<u8> = command.iter().take(4).map(u8::to_ascii_uppercase).collect();
    match verb.as_slice() {
        b"EHLO" => "250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n",
        b"DATA" => "354 go on\r\n",
        b"QUIT" => "221 2.0.0 bye\r\n",
        b"HELO" | b"MAIL" | b"RCPT" | b"RSET" | b"NOOP" => "250 2.0.0 fine\r\n",
        _ => "500 5.5.1 unknown\r\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn replies(sink: &Sink, input: &str) -> String {
        let mut stream = TcpStream::connect(sink.addr).await.unwrap();
        stream.write_all(input.as_bytes()).await.unwrap();
        let mut output = String::new();
        stream.read_to_string(&mut output).await.unwrap();
        output
    }

    fn mail(body: &str) -> String {
        format!("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nSubject: x\r\n\r\n{body}\r\n.\r\n")
    }

    #[tokio::test]
    async fn mails_of_one_pipelined_session_are_counted_apart() {
        let sink = Sink::start().await.unwrap();
        let input = format!(
            "EHLO me\r\n{}{}{}QUIT\r\n",
            mail("hello benchtoken000000000000"),
            mail("..stuffed\r\nbenchtoken000000000002"),
            mail("benchtoken000000000002 again"),
        );
        let output = replies(&sink, &input).await;
        assert_eq!(output.matches("2.0.0 taken").count(), 3);
        assert!(output.ends_with("221 2.0.0 bye\r\n"), "{output}");
        // 1 was not received, 2 was received twice.
        assert_eq!(sink.counts.compare(3), (1, 1));
        // If only number 0 was promised, both emails of number 2 are surplus.
        assert_eq!(sink.counts.compare(1), (0, 2));
    }

    #[tokio::test]
    async fn a_mail_without_a_token_is_not_overlooked() {
        let sink = Sink::start().await.unwrap();
        replies(&sink, &format!("HELO me\r\n{}QUIT\r\n", mail("nothing to see"))).await;
        assert_eq!(sink.counts.compare(0), (0, 1));
    }

    #[test]
    fn a_mail_ends_only_at_a_line_with_one_dot() {
        assert_eq!(unit(b"MAIL FROM:<a@b>\r\nRCPT", false), Some(17));
        assert_eq!(unit(b"MAIL FROM", false), None);
        assert_eq!(unit(b"text\r\n..\r\n", true), None);
        assert_eq!(unit(b"text\r\n.\r\nMAIL", true), Some(9));
        assert_eq!(unit(b".\r\n", true), Some(3));
    }
}
