//! Plays a message frame by frame, and handles key presses. Pure.

use crate::rtp::FRAME;

/// Silence before the first word, while the phone is lifted to the ear: half a second.
pub(crate) const LEAD: usize = 25;
/// Silence between repetitions: a second.
const PAUSE: usize = 50;
/// Most often that a message is heard in one call, however often `1` is pressed.
const MOST: u32 = 10;

/// The sound to play.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    sound: Vec<u8>,
    silence: Vec<u8>,
    /// Frames of silence before the rest.
    quiet: usize,
    /// Next sample of the sound.
    at: usize,
    /// How often it is yet to be played, the one in flight included.
    left: u32,
    /// Times that it was played to the end.
    heard: u32,
    /// Frames of silence at the end, in which keys can be pressed.
    listen: usize,
    keys: bool,
    opted_out: bool,
}

impl Script {
    /// Makes a script that plays the encoded `sound` `times` over, then silence for `listen` seconds; `silence` is an encoded sample of
    /// silence. `keys` enables key presses.
    pub(crate) fn new(mut sound: Vec<u8>, silence: u8, times: u32, listen: u64, keys: bool) -> Self {
        sound.resize(sound.len().next_multiple_of(FRAME), silence);
        Self {
            sound,
            silence: vec![silence; FRAME],
            quiet: LEAD,
            at: 0,
            left: times,
            heard: 0,
            listen: listen as usize * 50,
            keys,
            opted_out: false,
        }
    }

    /// Returns the next 20 ms; `None` at the end.
    pub(crate) fn next_frame(&mut self) -> Option<&[u8]> {
        if self.opted_out {
            return None;
        }
        if self.quiet > 0 {
            self.quiet -= 1;
            return Some(&self.silence);
        }
        if self.left == 0 {
            self.listen = self.listen.checked_sub(1)?;
            return Some(&self.silence);
        }
        let start = self.at;
        self.at += FRAME;
        if self.at >= self.sound.len() {
            self.end_of_sound();
        }
        self.sound.get(start..start + FRAME)
    }

    fn end_of_sound(&mut self) {
        self.heard += 1;
        self.left -= 1;
        self.at = 0;
        if self.left > 0 {
            self.quiet = PAUSE;
        }
    }

    /// Handles a key: `1` restarts the message; `9` ends the call and opts out.
    pub(crate) fn press(&mut self, key: char) {
        match key {
            '1' if self.keys && self.heard < MOST => {
                (self.at, self.quiet) = (0, LEAD);
                self.left = self.left.max(1);
            }
            '9' if self.keys => self.opted_out = true,
            _ => {}
        }
    }

    /// Returns whether the message was played to its end, or ended by a key.
    pub(crate) const fn was_heard(&self) -> bool {
        self.heard > 0 || self.opted_out
    }

    /// Returns whether the recipient opted out.
    pub(crate) const fn is_opted_out(&self) -> bool {
        self.opted_out
    }

    /// How much of the message was played, in tenths of a second.
    pub(crate) const fn tenths(&self) -> usize {
        self.at / (FRAME * 5)
    }
}

/// The key in the body of an INFO request, as gateways send that know no telephone events: `application/dtmf-relay` (`Signal=5`) or
/// `application/dtmf` (`5`).
pub(crate) fn of_info(content_type: &str, body: &str) -> Option<char> {
    let value = match content_type.split(';').next()?.trim().to_ascii_lowercase().as_str() {
        "application/dtmf-relay" => body.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            name.trim().eq_ignore_ascii_case("signal").then_some(value)
        })?,
        "application/dtmf" => body,
        _ => return None,
    };
    value.trim().chars().next().filter(|c| c.is_ascii_digit() || matches!(c, '*' | '#' | 'A'..='D'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of sound (not silence) and of both until the end, or until `most` frames.
    fn play(script: &mut Script, most: usize) -> (usize, usize) {
        let (mut sound, mut all) = (0, 0);
        while all < most
            && let Some(frame) = script.next_frame()
        {
            assert_eq!(frame.len(), FRAME);
            sound += usize::from(frame[0] == 7);
            all += 1;
        }
        (sound, all)
    }

    fn script(times: u32, listen: u64) -> Script {
        Script::new(vec![7; FRAME * 10 - 3], 0xFF, times, listen, true)
    }

    #[test]
    fn plays_as_often_as_asked_with_silence_around() {
        let mut once = script(1, 0);
        assert_eq!(play(&mut once, 1_000), (10, LEAD + 10));
        assert!(once.was_heard() && !once.is_opted_out());
        assert_eq!(play(&mut script(3, 2), 1_000), (30, LEAD + 30 + 2 * PAUSE + 100));
    }

    #[test]
    fn who_hangs_up_before_the_end_has_not_heard_it() {
        let mut script = script(2, 0);
        play(&mut script, LEAD + 9);
        assert!(!script.was_heard());
        assert_eq!(script.tenths(), 1);
        play(&mut script, 1);
        assert!(script.was_heard());
    }

    #[test]
    fn keys() {
        let mut again = script(1, 3);
        play(&mut again, LEAD + 10 + 20);
        again.press('1');
        assert_eq!(play(&mut again, 1_000).0, 10, "from the silence at the end");
        let mut early = script(1, 0);
        play(&mut early, LEAD + 5);
        early.press('1');
        assert_eq!(play(&mut early, 1_000), (10, LEAD + 10), "from the middle, and not twice");
        let mut patient = script(1, 60);
        for _ in 0..50 {
            patient.press('1');
            play(&mut patient, LEAD + 10);
        }
        assert_eq!(patient.heard, MOST);
        let mut out = script(1, 3);
        play(&mut out, 3);
        out.press('9');
        assert_eq!(out.next_frame(), None);
        assert!(out.was_heard() && out.is_opted_out());
        let mut deaf = Script::new(vec![7; FRAME], 0xFF, 1, 0, false);
        deaf.press('9');
        deaf.press('1');
        assert_eq!(play(&mut deaf, 100), (1, LEAD + 1));
    }

    #[test]
    fn keys_of_info_requests() {
        for (content_type, body, key) in [
            ("application/dtmf-relay", "Signal=9\r\nDuration=160\r\n", Some('9')),
            ("Application/DTMF-Relay; x=y", "Duration=160\nsignal = #", Some('#')),
            ("application/dtmf", "1", Some('1')),
            ("application/dtmf", "", None),
            ("application/dtmf-relay", "Duration=160", None),
            ("application/sdp", "Signal=9", None),
        ] {
            assert_eq!(of_info(content_type, body), key, "{body}");
        }
    }
}
