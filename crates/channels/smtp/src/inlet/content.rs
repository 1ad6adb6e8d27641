//! Lines of SMTP: ended by CR and LF, and nothing else (RFC 5321 §2.3.8).
//!
//! A server that also accepts a bare LF as a line end can be made to see an email end where the server before it does not, and to interpret
//! what follows as commands. Clients that send a bare CR or LF are disconnected.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

use super::room::{Buffer, Room};

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

/// What arrived of an email.
#[derive(Debug)]
pub(super) enum Content {
    Whole(Buffer),
    /// It has more octets than an email may have.
    TooLarge,
    /// The memory for emails was used up.
    NoRoom,
}

/// Reads an email of up to `most` octets up to its final dot and undoubles dots (RFC 5321 §4.5.2). One that is not kept is still read to the
/// end, because only there it can be answered.
pub(super) async fn read_mail(from: &mut (impl AsyncBufRead + Unpin), room: &Room, most: usize) -> Result<Content, Broken> {
    let (mut content, mut line, mut size) = (Content::Whole(room.buffer(most)), Vec::new(), 0_usize);
    loop {
        read_line(from, &mut line, LINE).await?;
        if line == b"." {
            return Ok(content);
        }
        let line = line.strip_prefix(b".").unwrap_or(&line);
        size = size.saturating_add(line.len() + 2);
        if size > most {
            content = Content::TooLarge;
        } else if let Content::Whole(buffer) = &mut content
            && !buffer.push(line)
        {
            content = Content::NoRoom;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None` for an email that is too large.
    async fn mail(bytes: &[u8]) -> Result<Option<String>, Broken> {
        let mut rest = bytes;
        match read_mail(&mut rest, &Room::new(50, 1), 50).await? {
            Content::Whole(buffer) => Ok(Some(String::from_utf8_lossy(&buffer.split().0).into_owned())),
            Content::TooLarge => Ok(None),
            Content::NoRoom => panic!("there is room for one email of the largest size"),
        }
    }

    #[tokio::test]
    async fn memory_is_shared_and_given_back() {
        let room = Room::new(100 * 1024, 1);
        let bytes = [&b"0123456789abcdef0123456789abcd\r\n".repeat(2_000)[..], b".\r\n"].concat();
        let read = async || read_mail(&mut &bytes[..], &room, 64_000).await.unwrap();
        let Content::Whole(first) = read().await else { panic!("the first has room") };
        assert!(matches!(read().await, Content::NoRoom));
        let too_large = read_mail(&mut &bytes[..], &room, 63_999).await.unwrap();
        assert!(matches!(too_large, Content::TooLarge), "sending it again would be in vain");
        let (bytes, held) = first.split();
        assert_eq!((bytes.len(), held.as_ref().map(|held| held.num_permits())), (64_000, Some(63)), "not more than its size");
        drop(held);
        assert!(matches!(read().await, Content::Whole(_)));
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
