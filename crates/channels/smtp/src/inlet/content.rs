//! Lines of SMTP: ended by CR and LF, and nothing else (RFC 5321 §2.3.8).
//!
//! A server that also accepts a bare LF as a line end can be made to see an email end where the server before it does not, and to interpret
//! what follows as commands. Clients that send a bare CR or LF are disconnected.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The longest command, in octets, its end included: RFC 5321 asks for 512, the extensions for some more.
pub(super) const COMMAND: usize = 4 * 1024;
/// Maximum length of a line, in octets, including its end. The standard allows 1000; many exceed it.
pub(super) const LINE: usize = 64 * 1024;

/// Why no line could be read.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection is gone.
    Gone,
    /// The line is longer than is read.
    Long,
    /// A bare CR or LF.
    Bare,
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Reads a line of at most `most` octets into `line`, and leaves its end away.
pub(super) async fn read_line(from: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>, most: usize) -> Result<(), Broken> {
    line.clear();
    from.take(most as u64).read_until(b'\n', line).await?;
    match line.as_slice() {
        [.., b'\r', b'\n'] => line.truncate(line.len() - 2),
        [.., b'\n'] => return Err(Broken::Bare),
        _ if line.len() == most => return Err(Broken::Long),
        _ => return Err(Broken::Gone),
    }
    if line.contains(&b'\r') { Err(Broken::Bare) } else { Ok(()) }
}

/// Reads an email up to its final dot and undoubles dots (RFC 5321 §4.5.2). `None` for more than `most` octets, which are still read to the
/// end.
pub(super) async fn read_mail(from: &mut (impl AsyncBufRead + Unpin), most: usize) -> Result<Option<Vec<u8>>, Broken> {
    let (mut mail, mut line, mut large) = (Vec::new(), Vec::new(), false);
    loop {
        read_line(from, &mut line, LINE).await?;
        if line == b"." {
            return Ok((!large).then_some(mail));
        }
        let line = line.strip_prefix(b".").unwrap_or(&line);
        large |= mail.len() + line.len() + 2 > most;
        if large {
            mail = Vec::new();
            continue;
        }
        mail.extend_from_slice(line);
        mail.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn mail(bytes: &[u8]) -> Result<Option<String>, Broken> {
        let mut rest = bytes;
        read_mail(&mut rest, 50).await.map(|mail| mail.map(|mail| String::from_utf8_lossy(&mail).into_owned()))
    }

    #[tokio::test]
    async fn a_mail_ends_with_its_dot_only() {
        for (bytes, expected) in [
            (&b"a\r\n.\r\n"[..], "a\r\n"),
            (b".\r\n", ""),
            (b"..\r\n...a\r\n.\r\nQUIT\r\n", ".\r\n..a\r\n"),
            (b".a\r\n.\r\n", "a\r\n"),
            (b"\xff\0\t\r\n.\r\n", "\u{fffd}\0\t\r\n"),
        ] {
            assert_eq!(mail(bytes).await.unwrap().as_deref(), Some(expected));
        }
        // Known forms of SMTP smuggling.
        for bare in [&b"a\n.\r\n.\r\n"[..], b"a\r\n.\n.\r\n", b"a\r.\r\n.\r\n", b"a\r\n.\r.\r\n", b"a\n.\n", b"a\r\r\n.\r\n", b"\n"] {
            assert!(matches!(mail(bare).await, Err(Broken::Bare)), "{}", bare.escape_ascii());
        }
        for cut in [&b""[..], b"a\r\n", b"a\r\n.", b"a\r\n.\r"] {
            assert!(matches!(mail(cut).await, Err(Broken::Gone)), "{}", cut.escape_ascii());
        }
        assert_eq!(mail(&[&b"x".repeat(48)[..], b"\r\n.\r\n"].concat()).await.unwrap().map(|m| m.len()), Some(50));
        assert_eq!(mail(&[&b"x".repeat(49)[..], b"\r\n.\r\n"].concat()).await.unwrap(), None);
        assert!(matches!(mail(&b"x".repeat(LINE + 1)).await, Err(Broken::Long)));
    }
}
